"""Grades a class idle and beside busy processes: verdicts and points must be equal, case by case.

    nox -s under_load [-- --times N] [--busy N] [--jobs-loaded N] [--only WORD] [--out DIR] [--keep-builds]

The class is the reference, every variant as a submission of its own, and 24 that are right, wrong, hang or
crash. The batch by itself and the first one beside busy processes begin with an empty build cache each, so
that compilers meet the load, too; later ones take the builds of that one. With ``--out`` an interrupted run
goes on where it stopped.

Beside busy processes the class is graded in shards, each a batch in a session of its own: Linux may share the
processors among sessions first (autogroups), and all gradings of one session would get as much as one of the
busy processes.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from batch.make_class import ATTACKS, FILES, LAUNCHER, REFERENCE, right_files
from first_assignment import ASSIGNMENT, MUTANTS, VARIANTS

from grader.records import record as results
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from grader.records.record import Record

    Class = Mapping[str, Mapping[str, str]]  # files by name, by submission

TESTS = Path(__file__).resolve().parent
SEED = 7
SHARDS_PER_LANE = 2  # the second ones fill up where the first ones end early
LONGEST = ("hangs-", "reference")
WRONG = (
    *("fw-no-maximum", "fw-row-in-20-bits", "bw-twice"),
    *("ln-shared-between-reductions", "lb-missing-event", "lb-row-in-20-bits"),
)
KERNELS = {  # that hang
    "endless-kernel": "__global__ void hang(volatile float* x) { while (true) x[0] += 1.0f; }",
    "two-blocks-wait": (
        "__device__ volatile int came[2];\n__global__ void hang(volatile float*) "
        "{ while (came[1 - blockIdx.x] == 0) continue; came[blockIdx.x] = 1; }"
    ),
    "flag-that-nobody-sets": (
        "__device__ volatile int flag;\n__global__ void hang(volatile float*) { while (flag == 0) continue; }"
    ),
}
HANGING = {  # what the launcher of softmax forward does first
    "endless-host": "for (volatile int i = 0;; i = i + 1) continue;",
    "host-waits-for-itself": "static std::mutex held; held.lock(); held.lock();",
    "sleep": "sleep(1000);",
    "fork-and-wait": "if (fork() == 0) for (;;) continue; wait(nullptr);",
}
CRASHING = {
    "segfault": ATTACKS["crashes"][0],
    "exit": ATTACKS["ends its process"][0],
    "abort": "abort();",
    "throw-above-1000": 'if (to_len > 1000) throw std::runtime_error("too long");',
    "flood": ATTACKS["floods its output"][0],
    "device-assert": "fails<<<1, 32, 0, stream>>>(to_len);",
    "out-of-bounds": "beyond<<<1, 32, 0, stream>>>(inp, (size_t)batch_size * nhead * from_len * to_len);",
}
BEFORE = (
    "#include <sys/wait.h>\n#include <unistd.h>\n#include <cassert>\n#include <cstdio>\n#include <cstdlib>\n"
    "#include <mutex>\n#include <stdexcept>\n"
    "__global__ void fails(int keys) { assert(keys < 1000); }\n"
    "__global__ void beyond(float* x, size_t count) { x[count + threadIdx.x] = 1.0f; }\n"
)
# An endless loop of the host takes three times its limit, beside busy processes most of a batch.
RULES = """\
id = "under_load"
title = "A class beside busy processes"
extends = "llm_systems_3"
[limits]
run_seconds_sim = 15.0
"""
BUSY = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n  for _ in range(10**5): pass"


@dataclass(frozen=True)
class Compared:
    """Two batches of the same class: how many cases both have, and what differs, a line each."""

    submissions: int
    cases: int
    differing: tuple[str, ...]


def submissions() -> Class:
    """The class."""
    right = right_files()
    made = {"reference": {**right, "transformer.py": (REFERENCE / "transformer.py").read_text()}}
    for path in sorted(VARIANTS.glob("*/*.cu")):
        file = next(name for name in FILES if name.startswith(path.parent.name.partition("_")[0]))
        made[f"{path.parent.name}-{path.stem}"] = {file: path.read_text()}
    naive = {path.name: path.read_text() for path in (TESTS / "benchmarks" / "naive").glob("*.cu")}
    softmax, layernorm = FILES
    header = {name: text for name, text in right.items() if name not in FILES}
    made |= {
        "right-naive": naive,
        "right-naive-softmax": {**right, softmax: naive[softmax]},
        "right-naive-layernorm": {**right, layernorm: naive[layernorm]},
        "right-softmax-alone": {softmax: right[softmax], **header},
    }
    mutants = {mutant.id: mutant for mutant in MUTANTS}
    for name in WRONG:
        mutant = mutants[name]
        made[f"wrong-{name}"] = {**header, mutant.file: mutant.text(ASSIGNMENT)}
    for name, kernel in KERNELS.items():
        made[f"hangs-{name}"] = {**header, **_first("hang<<<2, 1, 0, stream>>>(inp);", kernel + "\n")}
    made |= {f"hangs-{name}": {**header, **_first(code)} for name, code in HANGING.items()}
    made |= {f"crashes-{name}": {**header, **_first(code)} for name, code in CRASHING.items()}
    return made


def _first(code: str, before: str = "") -> Mapping[str, str]:
    """The reference's softmax, whose forward launcher does ``code`` first."""
    text = right_files()[FILES[0]]
    edited, count = LAUNCHER.subn(lambda found: f"{found[0]} {code}", text)
    assert count == 1
    return {FILES[0]: BEFORE + before + edited}


def facts(record: Record) -> dict[str, str]:
    """What must be the same on any machine: verdicts, points, and where checkers saw something, in order."""
    found = {"exit code": str(record.exit_code), "score": _points(record.score)}
    for problem in record.problems:
        found[problem.id] = f"{problem.verdict} {_points(problem.points)}"
        for group in problem.correctness.groups:
            found[f"{problem.id}: {group.name}"] = f"{group.verdict} {group.earned} of {group.possible}"
        for number, case in enumerate(problem.correctness.cases):
            found[f"{problem.id}: {number}. {case.name}"] = case.verdict
        for check in problem.checks:
            places = [f"{one.kind} {one.file}:{one.line}" for one in check.findings]
            found[f"{problem.id}: {check.tool}"] = f"{check.verdict} {', '.join(places)}"
    return found


def _points(points: results.Points) -> str:
    return f"{points.earned} of {points.decided} of {points.possible}"


def differences(idle: Record, loaded: Record) -> list[str]:
    """Each fact that differs; what one of the two lacks does."""
    one, other = facts(idle), facts(loaded)
    return [
        f"{name}: {one.get(name, 'nothing')} idle, {other.get(name, 'nothing')} loaded"
        for name in dict.fromkeys((*one, *other))
        if one.get(name) != other.get(name)
    ]


def compared(idle: Mapping[str, Record], loaded: Mapping[str, Record]) -> Compared:
    """The records of two batches, by submission."""
    differing = [f"{name}: no record of both" for name in sorted(idle.keys() ^ loaded.keys())]
    both = sorted(idle.keys() & loaded.keys())
    for name in both:
        differing += [f"{name}: {line}" for line in differences(idle[name], loaded[name])]
    cases = sum(len(problem.correctness.cases) for name in both for problem in idle[name].problems)
    return Compared(len(both), cases, tuple(differing))


def unexpected(records: Mapping[str, Record]) -> list[str]:
    """Cases of right submissions that do not pass, and wrong ones without a case that does not."""
    found = []
    for name, record in records.items():
        failed = [
            f"{name}: {problem.id}: {case.name} is {case.verdict}"
            for problem in record.problems
            for case in problem.correctness.cases
            if case.verdict is not Verdict.PASS
        ]
        wrong = name.startswith(("wrong-", "hangs-", "crashes-"))
        lost = failed or any(
            Verdict.FAIL in {check.verdict for check in one.checks} for one in record.problems
        )
        untrusted = any(problem.verdict is Verdict.UNTRUSTED for problem in record.problems)
        if not wrong:
            found += failed
        elif not lost and not untrusted:
            found.append(f"{name}: nothing of it fails")
    return found


@contextmanager
def busy(count: int) -> Iterator[None]:
    """``count`` processes that use all the time they get; they end with this one, however it ends."""
    with ExitStack() as running:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", BUSY, str(os.getpid())], start_new_session=True)
            running.enter_context(process)
            running.callback(process.kill)
        yield


@dataclass
class Lanes:
    """Batches side by side, each in a session of its own; what they print goes to ``log``."""

    log: Path
    running: set[subprocess.Popen[bytes]] = field(default_factory=set)
    stopped: bool = False

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """The exit code of ``command``; that of an interrupt if all are stopped."""
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, start_new_session=True
            )
            self.running.add(process)
            if self.stopped:
                process.terminate()
            code = process.wait()
            self.running.discard(process)
            return code

    def stop(self) -> None:
        """End all: Ctrl-C does not reach other sessions."""
        self.stopped = True
        for process in tuple(self.running):
            process.terminate()


@dataclass(frozen=True)
class Course:
    """How a class is graded.

    Attributes:
        assignment: the folder of its rules.
        folder: the class.
        out: receives the records.
        names: of the submissions.
        cache: the folder of builds.
        jobs: gradings at a time.
        shards: 0 for one batch in this session.
    """

    assignment: Path
    folder: Path
    out: Path
    names: Sequence[str]
    cache: Path
    jobs: int
    shards: int = 0

    def command(self, *options: str) -> list[str]:
        command = [sys.executable, "-P", "-m", "grader", "batch", str(self.folder), "--out", str(self.out)]
        rules = ("--assignment", str(self.assignment), "--device", "sim", "--seed", str(SEED))
        return [*command, *rules, *options]

    def records(self) -> Mapping[str, Record]:
        """What is graded, by submission."""
        files = {name: self.out / name / "result.json" for name in self.names}
        return {name: results.read(file) for name, file in files.items() if file.exists()}

    def order(self) -> list[int]:
        """The numbers of the shards, those that take longest first."""
        names = sorted(self.names)

        def long(number: int) -> int:
            return sum(name.startswith(LONGEST) for name in names[number - 1 :: self.shards])

        return sorted(range(1, self.shards + 1), key=long, reverse=True)


def batch(course: Course) -> tuple[Mapping[str, Record], float]:
    """The records of a batch by submission, and its wall time in seconds; of one that is done, what was kept.

    Raises:
        SystemExit: the batch ended before all was graded.
    """
    done = course.out.with_suffix(".json")
    if not done.exists():
        began = time.monotonic()
        course.out.mkdir(exist_ok=True)
        codes = _in_shards(course) if course.shards else {_in_one(course)}
        if failed := codes - {0, 3}:  # 3: a fault of the machine, which the records show
            raise SystemExit(f"{course.out.name} ended with {sorted(failed)}")
        done.write_text(json.dumps({"seconds": time.monotonic() - began}))
    return course.records(), json.loads(done.read_text())["seconds"]


def _in_one(course: Course) -> int:
    command = course.command("--jobs", str(course.jobs))
    process = subprocess.Popen(command, env={**os.environ, "GRADER_CACHE": str(course.cache)})
    try:
        return process.wait()
    except KeyboardInterrupt:  # of which it was told, too: it ends what it started
        process.wait()
        raise


def _in_shards(course: Course) -> set[int]:
    began = time.monotonic()
    environment = {**os.environ, "GRADER_CACHE": str(course.cache)}
    lanes = Lanes(course.out.with_suffix(".log"))
    codes = set()
    with ThreadPoolExecutor(course.jobs) as pool:
        try:
            shards = [
                pool.submit(
                    lanes.run,
                    course.command("--jobs", "1", "--shard", f"{number}/{course.shards}"),
                    environment,
                )
                for number in course.order()
            ]
            for ended in as_completed(shards):
                codes.add(ended.result())
                graded = f"{len(course.records())} of {len(course.names)} graded"
                print(f"{course.out.name}: {graded}, {time.monotonic() - began:.0f} s", file=sys.stderr)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            lanes.stop()
            raise
    return codes


def write(folder: Path, wanted: Class) -> None:
    """Lay the class out, a folder each, in place of an earlier one."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, files in wanted.items():
        (folder / name).mkdir(parents=True)
        for file, text in files.items():
            (folder / name / file).write_text(text)


def write_rules(folder: Path) -> None:
    """Write the assignment that the class is graded by: the first one's problems, with a limit of its own."""
    folder.mkdir(exist_ok=True)
    problems = "".join(f'[[problems]]\nid = "{problem.id}"\n' for problem in ASSIGNMENT.rules.problems)
    (folder / "assignment.toml").write_text(RULES + problems)


def table(rows: Sequence[tuple[Compared, float, float]]) -> str:
    """A line per comparison: what was compared, what differs, and the seconds of both batches."""
    lines = ["submissions  cases  differing  seconds idle  seconds loaded"]
    lines += [
        f"{one.submissions:11}  {one.cases:5}  {len(one.differing):9}  {idle:12.0f}  {loaded:14.0f}"
        for one, idle, loaded in rows
    ]
    return "\n".join(lines)


def main() -> int:
    processors = os.cpu_count() or 1
    parser = argparse.ArgumentParser(description="Grade a class idle and beside busy processes.")
    parser.add_argument("--times", type=int, default=1, metavar="N", help="loaded batches, one after another")
    parser.add_argument("--busy", type=int, default=8, metavar="N", help="busy processes per processor")
    parser.add_argument(
        "--jobs-loaded",
        type=int,
        default=4 * processors,
        metavar="N",
        help="gradings at a time beside them, about 1 GiB of memory each; by default four per processor",
    )
    parser.add_argument("--only", nargs="+", metavar="WORD", help="submissions whose name holds one of these")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="keep class and records here, and go on from what an interrupted run left",
    )
    parser.add_argument("--keep-builds", action="store_true", help="compile in the idle batch alone")
    options = parser.parse_args()
    words = options.only or [""]
    wanted = {name: files for name, files in submissions().items() if any(word in name for word in words)}
    if not wanted:
        parser.error(f"no submission has {' or '.join(words)} in its name")
    with tempfile.TemporaryDirectory() as temporary:
        out = (options.out or Path(temporary)).absolute()
        sources = hashlib.sha256(repr((RULES, wanted)).encode()).hexdigest()
        if (noted := out / "class.sha256").exists() and noted.read_text() != sources:
            parser.error(f"{out} holds records of another class: name another folder")
        write(out / "class", wanted)
        noted.write_text(sources)
        builds = out / "builds-idle", out / "builds-loaded"
        write_rules(rules := out / "assignment")
        course = Course(rules, out / "class", out / "idle", tuple(wanted), builds[0], processors)
        idle, idle_seconds = batch(course)
        cache, shards = builds[not options.keep_builds], SHARDS_PER_LANE * options.jobs_loaded
        course = replace(course, cache=cache, jobs=options.jobs_loaded, shards=min(shards, len(wanted)))
        rows = []
        for number in range(1, options.times + 1):
            with busy(options.busy * processors):
                loaded, seconds = batch(replace(course, out=out / f"loaded-{number}"))
            rows.append((compared(idle, loaded), idle_seconds, seconds))
            print("\n".join(rows[-1][0].differing), flush=True)
    wrong = unexpected(idle)
    print("\n".join(wrong))
    print(table(rows))
    complete = all(one.submissions == len(wanted) and not one.differing for one, *_ in rows)
    return 0 if complete and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
