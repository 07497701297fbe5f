"""The corpus: CUDA programs with a planted bug, right ones that look dangerous, and self-checking kernels.

    python tests/simulator/corpus.py --device sim --json tests/simulator/corpus_sim.json
    python tests/simulator/corpus.py --device gpu --json tests/simulator/corpus_gpu.json
    python tests/simulator/corpus.py --table > docs/corpus.md

The first two build every program (cached by content) and run it: on the sim, or on a GPU, there plainly and
under compute-sanitizer's four tools. The third makes the comparison from the two records. On a GPU machine
this file needs nothing but Python and the CUDA toolkit. How sources mark their bugs: ``corpus/corpus.h``.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import generated

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent
RECORDS = {"sim": HERE / "corpus_sim.json", "gpu": HERE / "corpus_gpu.json"}
BUILDS = Path(tempfile.gettempdir()) / "grader-corpus"
FLAGS = {
    "sim": ("-cudart", "shared", "-lineinfo", "--no-compress", "-gencode", "arch=compute_80,code=compute_80"),
    "gpu": ("-lineinfo", "-arch=native"),
}
SECONDS = 40.0  # for one run of one program
INSTRUCTIONS = 5_000_000  # warp instructions of a kernel on the sim, before it counts as endless
TOOLS = ("memcheck", "initcheck", "racecheck", "synccheck")

# The words of compute-sanitizer that mean a kind of ours.
_INVALID = r"Invalid __global__"
_RACE = r"Race reported"
_BARRIER = r"Barrier error"
WORDS = {
    "global_oob": _INVALID,
    "use_after_free": _INVALID,
    "host_pointer": _INVALID,
    "shared_oob": r"Invalid __shared__",
    "local_oob": r"Invalid __local__",
    "misaligned": r"misaligned",
    "double_free": r"Malloc/Free error|Double free|on CUDA API call to cudaFree",
    "leak": r"^Leaked",
    "uninit_global": r"Uninitialized __global__",
    "uninit_shared": r"Uninitialized __shared__",
    "race_shared": _RACE,
    "race_warp": _RACE,
    "divergent_barrier": _BARRIER,
    "missing_lanes": _BARRIER,
    "exited_lanes": _BARRIER,
    "invalid_launch": r"Program hit .* on CUDA API call to cudaLaunch",
    "memcpy_overflow": r"Program hit .* on CUDA API call to cudaMem(cpy|set)",
}
# What compute-sanitizer does not look for.
NOT_LOOKED_FOR = {
    "race_global": "no races in global memory",
    "budget": "nothing ends an endless kernel",
    "deadlock": "nothing ends an endless kernel",
    "unchecked_error": "does not know whether a program looks at its errors",
    "device_pointer_on_host": "does not look at host code; the program crashes",
}

# Why a right program is right although compute-sanitizer reports something in it.
NOT_A_BUG = {
    "producer_and_consumer": """
        `barrier.arrive` on one side and `barrier.sync` on the other order what is before the one and behind
        the other; the PTX ISA's example of a producer and a consumer is written so. To racecheck, who only
        arrives is not ordered.""",
    "flag_in_shared_memory": """
        racecheck orders by barriers alone: it says the same of `flag_without_fence`. Here each lane has a
        `__threadfence_block()` between the data and the flag. It is a sequentially consistent fence, so it
        comes either before or behind the reader's, and behind is impossible, as the reader saw the flag.""",
    "volatile_flag_in_shared_memory": """
        the same with a `volatile` flag: such accesses may meet, as the PTX ISA says. racecheck names the
        flag itself, too.""",
    "copies_counted_by_a_barrier": """
        `cuda::memcpy_async` lets the copies arrive at the barrier by `cp.async.mbarrier.arrive`, which first
        has the barrier expect one more arrival. synccheck reports a missing wait at the thread's own
        arrival, the next one, and ends the program; it seems to count the one and not the other. Of
        `barrier_in_two_halves`, arrivals and waits without copies, it says nothing.""",
    "pipeline_of_the_block": """
        `producer_commit()` of `cuda::pipeline` does the same: the copies arrive, then the thread.""",
}


GENERATED = """
## Generated programs

Made by `python tests/simulator/generated.py`, which `nox -s corpus` runs, and which fails if a race is
missed or another one reported. 23 patterns by hand and 14 in steps (exchange, reduction, scan, stencil,
transpose, gather, double buffer, histogram, queue, graph push and pull, list, broadcast, compaction),
for values of 1, 2, 4, 8 and 16 bytes, each right and with one thing left out: a barrier, an atomic, a
fence, a buffer or an event. 12 more order what they do themselves: a message, one thread for all of its
block or warp, fences of each thread around a barrier, the last of several, look-back, a queue, a lock, a
chain of atomics, what is told on, a pipeline of mbarriers, named barriers, parts of a warp. There flags
are volatile, atomics, relaxed with `fence.acq_rel`, or releases and acquires, of each scope, and what is
wrong is a fence that is missing, on the wrong side or of block scope, a flag of block scope, a thread
that speaks for others, a chain that a store breaks, an arrival before the write, a wait behind the read.
A race counts as found if it is reported in one of the two orders of blocks and warps that grading runs
in. All are reached; how many leave other numbers than their right twin, in one of these orders, is
beside it: warps run in step here, and launches one after the other, so that races of lanes or streams
mostly do no harm.

`python tests/simulator/racecheck.py` runs those in shared memory under racecheck, on a GPU.
"""


@dataclass(frozen=True, order=True)
class Mark:
    """What a line of a source is marked with; ``line`` is 0 if the fault is not on a line of a kernel."""

    tool: str
    kind: str
    line: int


@dataclass(frozen=True)
class Program:
    """One program; ``group`` is bugs, clean or kernels, ``bugs`` the lines of which a finding names one."""

    name: str
    group: str
    source: Path
    about: str
    bugs: tuple[Mark, ...] = ()
    also: tuple[Mark, ...] = ()

    @property
    def endless(self) -> bool:
        return any(bug.tool == "hang" for bug in self.bugs)


@dataclass(frozen=True)
class Found:
    """A finding of ours, where ``what`` is its kind, or of compute-sanitizer, with its first sentence."""

    tool: str
    what: str
    lines: list[int]
    message: str = ""


@dataclass(frozen=True)
class Run:
    """What a program did, and where; ``ending`` says how it ended, unless it did so by itself."""

    right: bool = False
    ending: str = ""
    found: list[Found] = field(default_factory=list)
    device: str = ""


Runs = dict[str, dict[str, Run]]  # by program, and by tool: "sim", "plain" or one of TOOLS


def programs() -> list[Program]:
    """All programs, in the order of their sources."""
    return [program for source in sorted(HERE.glob("corpus/*/*.cu")) for program in programs_of(source)]


def programs_of(source: Path) -> list[Program]:
    """The programs of one source, with its marks."""
    found: list[Program] = []
    for number, line in enumerate(source.read_text().splitlines(), 1):
        if begin := re.match(r"// --- (\w+): (.+)$", line):
            found.append(Program(begin[1], source.parent.name, source, begin[2]))
        for word, tool, kind, host in re.findall(r"// (BUG|ALSO) (\w+) (\w+)(, in host code)?", line):
            mark = Mark(tool, kind, 0 if host else number)
            program = found.pop()
            if word == "BUG":
                found.append(replace(program, bugs=(*program.bugs, mark)))
            else:
                found.append(replace(program, also=(*program.also, mark)))
    return found


def build(source: Path, device: str) -> Path:
    """The executable of a source for a device, built unless it stands there.

    Raises:
        RuntimeError: nvcc refused it, with its words.
    """
    header = HERE / "corpus" / "corpus.h"
    content = source.read_bytes() + header.read_bytes() + " ".join(FLAGS[device]).encode()
    built = BUILDS / f"{source.stem}-{device}-{hashlib.sha256(content).hexdigest()[:16]}"
    BUILDS.mkdir(parents=True, exist_ok=True)
    with (BUILDS / f"{source.stem}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another test process may want it, too
        if not built.exists():
            fresh = built.with_suffix(f".{os.getpid()}")
            command = ["nvcc", "-O1", *FLAGS[device], "-o", str(fresh), str(source.relative_to(HERE))]
            done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
            fresh.replace(built)
    return built


def run_on_sim(
    program: Program,
    executable: Path,
    *,
    reverse: bool = False,
    threads: int = 1,
    overflow: bool = False,
    outputs: Path | None = None,
) -> Run:
    """Run a program on the sim with all checks; leaks are looked for unless another bug is planted.

    Args:
        overflow: also look for indices that do not fit into 32 bits.
        outputs: file that the program writes what it copies to the host to (see ``corpus.h``).
    """
    from grader.records.errors import DeviceError  # noqa: PLC0415 (a GPU machine needs no grader)
    from grader.records.sentences import sentence  # noqa: PLC0415
    from grader.simulator.driver import (  # noqa: PLC0415
        LIBRARIES,
        SOCKET_VARIABLE,
        Options,
        Order,
        Simulator,
    )

    options = Options(
        open=True,
        prints=True,
        leak_check=not program.bugs or program.bugs[0].kind == "leak",
        instruction_budget=INSTRUCTIONS,
        order=Order.REVERSED if reverse else Order.PROGRAM,
        threads=threads,
        overflow=overflow,
    )
    try:
        with Simulator(options) as simulator:
            with simulator.client_socket() as channel:
                environment = {"LD_LIBRARY_PATH": str(LIBRARIES), SOCKET_VARIABLE: str(channel.fileno())}
                command = [str(executable), program.name, *([str(outputs)] if outputs else [])]
                process = _start(command, environment, (channel.fileno(),))
            output, ending = _finish(process)
            simulator.synchronize()
            findings = simulator.take_findings()
            gaps = (*map(str, simulator.unsupported()), *simulator.tampering())
    except DeviceError as error:
        return Run(ending=str(error))
    found = [
        Found(
            finding.tool,
            finding.kind,
            [finding.line] if Path(finding.file).name == program.source.name else [],
            str(sentence(finding)),
        )
        for finding in findings
    ]
    right = f"ok {program.name}\n" in output
    if not program.bugs and not right:
        ending = ending or output.strip()
    return Run(right, "; ".join(gaps) or ending, found)


def run_on_gpu(program: Program, executable: Path, tool: str, outputs: Path | None = None) -> Run:
    """Run a program on a GPU: plainly, or under a tool of compute-sanitizer; ``outputs`` as on the sim."""
    command = [str(executable), program.name, *([str(outputs)] if outputs else [])]
    if tool == "plain":
        output, ending = _finish(_start(command, {}))
    else:
        sanitizer = ["compute-sanitizer", "--tool", tool]
        output, ending = _finish(_start([*sanitizer, *_sanitizer_options(tool), *command], {}))
        if "= COMPUTE-SANITIZER" not in output:  # it did not like its options
            output, ending = _finish(_start([*sanitizer, *command], {}))
    found = [] if tool == "plain" else reports(tool, output, program.source.name)
    right = f"ok {program.name}\n" in output
    if not right and not found:
        ending = ending or output.strip()[-500:]
    return Run(right, ending, found)


@cache
def _sanitizer_options(tool: str) -> tuple[str, ...]:
    if tool == "memcheck":
        return ("--leak-check", "full")
    shared = "--initcheck-address-space"
    if tool == "initcheck":  # newer versions can look at shared memory, too
        words = subprocess.run(["compute-sanitizer", "--help"], capture_output=True, text=True, check=False)
        return (shared, "all") if shared in words.stdout else ()
    return ()


def reports(tool: str, output: str, source: str) -> list[Found]:
    """What compute-sanitizer printed, equal reports once, with the lines of ``source`` that each names."""
    found: dict[tuple[str, tuple[int, ...]], Found] = {}
    sentence, lines = "", set[int]()

    def close() -> None:
        if sentence:
            key = sentence, tuple(sorted(lines))
            found[key] = Found(tool, sentence, sorted(lines))

    for line in output.splitlines():
        if not line.startswith("========= "):
            continue
        text = line.removeprefix("========= ")
        if not text.startswith(" "):
            close()
            no_report = r"\w+ SUMMARY|COMPUTE-SANITIZER|Info|(Error: )?(process|Target|The) |No attachable"
            sentence = "" if re.match(no_report, text) else re.sub(r"^(Error|Warning): ", "", text)
            sentence = re.sub(r"\+?0x[0-9a-f]+|\[\d+ hazards\]|\S*/", "", sentence).strip()[:200]
            lines = set()
        elif "misaligned" in text and "misaligned" not in sentence:
            sentence += ", misaligned"
        lines |= {int(number) for number in re.findall(rf"{re.escape(source)}:(\d+)", text)}
    close()
    return list(found.values())


def _start(
    command: list[str], environment: dict[str, str], descriptors: tuple[int, ...] = ()
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        env={**os.environ, **environment},
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def _finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Output, and how it ended if not by itself; when its time is up, with all that it started."""
    try:
        output, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return output, f"ended after {SECONDS:g} s"
    return output, f"signal {-process.returncode}" if process.returncode < 0 else ""


class Record:
    """The runs on one device, written to a file after every run."""

    def __init__(self, path: Path | None) -> None:
        self.runs: Runs = {}
        self._path = path
        self._lock = threading.Lock()

    def add(self, program: Program, tool: str, run: Run) -> None:
        with self._lock:
            self.runs.setdefault(program.name, {})[tool] = run
            if self._path is not None:
                content = {name: {t: asdict(r) for t, r in runs.items()} for name, runs in self.runs.items()}
                fresh = self._path.with_suffix(".new")
                fresh.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
                fresh.replace(self._path)

    @staticmethod
    def read(path: Path) -> Runs:
        """The runs that a file holds; none without the file."""
        content = json.loads(path.read_text()) if path.exists() else {}
        return {
            name: {
                tool: Run(**{**run, "found": [Found(**found) for found in run["found"]]})
                for tool, run in runs.items()
            }
            for name, runs in content.items()
        }


def run_all(device: str, chosen: Sequence[Program], record: Record, jobs: int, seconds: float) -> None:
    """Build and run programs; what has not begun after ``seconds`` is not run, and the record says so."""
    deadline = time.monotonic() + seconds
    name = "sim" if device == "sim" else gpu_name()

    def one(program: Program, tool: str, executable: Future[Path]) -> None:
        if time.monotonic() > deadline:
            run = Run(ending="not run: the time was up")
        elif device == "sim":
            run = replace(run_on_sim(program, executable.result()), device=name)
        else:
            run = replace(run_on_gpu(program, executable.result(), tool), device=name)
        record.add(program, tool, run)

    with ThreadPoolExecutor(jobs) as pool:
        sources = dict.fromkeys(program.source for program in chosen)
        executables = {source: pool.submit(build, source, device) for source in sources}
        tasks = [(program, tool) for program in chosen for tool in _tools(program, device)]
        tasks.sort(key=lambda task: task[1] in TOOLS and _tool_for(task[0]) not in ("plain", task[1]))
        waiting = [pool.submit(one, program, tool, executables[program.source]) for program, tool in tasks]
        for each in waiting:
            each.result()


def gpu_name() -> str:
    """Maker and model of the first GPU: ``NVIDIA H100``."""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return " ".join(found.split()[:2])


def _tools(program: Program, device: str) -> Sequence[str]:
    if device == "sim":
        return ("sim",)
    if program.endless:  # nothing there would end it
        return ()
    return ("plain",) if program.group == "kernels" else ("plain", *TOOLS)


def _tool_for(program: Program) -> str:
    """Where compute-sanitizer would report what is planted; such runs come first."""
    if not program.bugs:
        return "plain"
    return program.bugs[0].tool if program.bugs[0].tool in TOOLS else "memcheck"


def fault_of(program: Program, run: Run) -> str:
    """Empty if the sim saw exactly what is there, else what is wrong with what it saw."""
    crashes = bool(program.bugs) and run.ending.startswith("signal")
    if run.ending and not crashes:
        return run.ending
    hit = False
    for found in run.found:
        mark = Mark(found.tool, found.what, found.lines[0] if found.lines else 0)
        if mark not in program.bugs + program.also:
            return f"unexpected {mark.tool} {mark.kind} at line {mark.line}: {found.message}"
        hit |= mark in program.bugs
    if program.bugs and not hit:
        return f"not found: {program.bugs[0].tool} {program.bugs[0].kind} at line {program.bugs[0].line}"
    return "" if program.bugs or run.right else "wrong result"


def seen_by_sim(program: Program, run: Run) -> str:
    """A cell of the table."""
    if fault := fault_of(program, run):
        return fault
    if not program.bugs:
        return "right" if program.group == "kernels" else "no finding"
    marks = {(bug.kind, bug.line) for bug in program.bugs}
    planted = {found.lines[0] for found in run.found if found.lines and (found.what, found.lines[0]) in marks}
    return "found" + (f", line {min(planted)}" if planted else "")


def seen_by_sanitizer(program: Program, runs: dict[str, Run]) -> str:
    """A cell of the table; begins with "found" if it names the bug and one of its lines."""
    if program.bugs and program.bugs[0].kind in NOT_LOOKED_FOR:
        return f"- ({NOT_LOOKED_FOR[program.bugs[0].kind]})"
    tool = _tool_for(program)
    if tool not in runs or runs[tool].ending.startswith("not run"):
        return "not run"
    if program.bugs:
        return _found_by_sanitizer(program, runs[tool], runs)
    said = [f"{found.tool}: {found.what}" for run in runs.values() for found in run.found]
    if not runs[tool].right:
        said.insert(0, f"wrong result {runs[tool].ending}")
    return "; ".join(said) or ("right" if program.group == "kernels" else "no report")


def _found_by_sanitizer(program: Program, run: Run, runs: dict[str, Run]) -> str:
    hits = [found for found in run.found if re.search(WORDS[program.bugs[0].kind], found.what)]
    if not hits:
        said = [f"{found.tool}: {found.what}" for each in runs.values() for found in each.found]
        return "; ".join(["silent", *filter(None, [run.ending]), *said[:1]])
    if program.bugs[0].line == 0:
        return "found"
    lines = {line for found in hits for line in found.lines}
    if marked := lines & {bug.line for bug in program.bugs}:
        return f"found, line {min(marked)}"
    return f"elsewhere, line {', '.join(map(str, sorted(lines))) or 'unknown'}"


def table(sim: Runs, gpu: Runs) -> str:
    """The comparison as Markdown."""
    text = [
        "# The corpus: the sim beside compute-sanitizer",
        "",
        "Made by `python tests/simulator/corpus.py --table` from `corpus_sim.json` and `corpus_gpu.json`,",
        "which the same command writes with `--device sim` and `--device gpu`. The programs are in",
        "`tests/simulator/corpus/`. A dash says what compute-sanitizer does not look for. What the findings",
        "mean: [findings.md](findings.md).",
        "",
        _devices(gpu),
    ]
    titles = {
        "bugs": "Planted bugs",
        "clean": "Right, though they look dangerous",
        "kernels": "Kernels that check themselves",
    }
    for group, title in titles.items():
        rows = [_row(program, sim, gpu) for program in programs() if program.group == group]
        agree = Counter(row[-1] for row in rows)
        sums = f"{len(rows)} programs: {agree['yes']} agree, {agree['no']} do not"
        sums += f", {agree['-']} have no counterpart" if agree["-"] else ""
        sums += f", {agree['not run']} were not run on both." if agree["not run"] else "."
        text += ["", f"## {title}", "", sums, ""]
        text += ["| program | planted | sim | compute-sanitizer | agree |", "|---|---|---|---|---|"]
        text += [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
        if group == "clean":
            text += ["", "Where compute-sanitizer reports something, and why the program is right:", ""]
            text += [f"- `{name}`: {' '.join(reason.split())}" for name, reason in NOT_A_BUG.items()]
    text += [
        "",
        *GENERATED.strip().splitlines(),
        "",
        generated.table(generated.read(generated.RECORD)).rstrip(),
    ]
    return "\n".join(text) + "\n"


def _devices(gpu: Runs) -> str:
    """Which programs ran on which GPU; those of the GPU that ran most are not named."""
    names: dict[str, list[str]] = {}
    for program, runs in gpu.items():
        for device in sorted({run.device for run in runs.values()} - {""}):
            names.setdefault(device, []).append(f"`{program}`")
    (first, most), *others = sorted(names.items(), key=lambda item: -len(item[1]))
    but = "".join(f" On an {device}: {', '.join(programs)}." for device, programs in others)
    return f"{len(most)} of the programs ran on an {first}.{but}"


def _row(program: Program, sim: Runs, gpu: Runs) -> tuple[str, ...]:
    planted = ""
    if program.bugs:
        lines = sorted({bug.line for bug in program.bugs if bug.line})
        where = f", line {' or '.join(map(str, lines))}" if lines else ""
        planted = f"{program.bugs[0].tool} {program.bugs[0].kind}{where}"
    ours = seen_by_sim(program, sim[program.name]["sim"]) if program.name in sim else "not run"
    theirs = seen_by_sanitizer(program, gpu.get(program.name, {}))
    if theirs.startswith("-"):
        agree = "-"
    elif "not run" in (ours, theirs):
        agree = "not run"
    else:
        expected = ("found",) if program.bugs else ("no finding", "no report", "right")
        agree = "yes" if ours.startswith(expected) and theirs.startswith(expected) else "no"
    return f"`{program.name}`: {program.about}", planted, ours, theirs, agree


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=("sim", "gpu"))
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the record goes")
    parser.add_argument(
        "--table", action="store_true", help="print the comparison of both records as Markdown"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=280.0, help="no run begins after this")
    parser.add_argument("names", nargs="*", help="only these programs; the record keeps the others")
    arguments = parser.parse_args()
    chosen = [program for program in programs() if not arguments.names or program.name in arguments.names]
    if arguments.device:
        sys.path.insert(0, str(HERE.parents[1]))
        record = Record(arguments.json)
        if arguments.names and arguments.json:
            record.runs.update(Record.read(arguments.json))
        run_all(arguments.device, chosen, record, arguments.jobs, arguments.seconds)
        for program in chosen:
            runs = record.runs.get(program.name, {})
            sim = arguments.device == "sim"
            seen = seen_by_sim(program, runs["sim"]) if sim else seen_by_sanitizer(program, runs)
            sys.stdout.write(f"{program.group:8} {program.name:34} {seen}\n")
    if arguments.table:
        sys.stdout.write(table(Record.read(RECORDS["sim"]), Record.read(RECORDS["gpu"])))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
