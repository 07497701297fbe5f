"""Where the time of a grading goes, phase by phase, and in which process and thread.

    python tests/benchmarks/phases.py grade PATH [--assignment ID] [--problem P ...] [--device gpu]
    python tests/benchmarks/phases.py batch FOLDER --out DIR [--assignment ID] [--device gpu] [--seconds S]
    either with [--trace F] [--least S], grade with [--times N]

A table says how often each phase came, and how many seconds it took in all: of the wall clock, and of the
thread's own processor time. Phases contain others, and go on side by side. F gets each of them with its
beginning and end, in the format of the trace viewers of Chrome and Perfetto, also of those that never ended.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

TRACE = "GRADER_TRACE"  # environment: the file that workers of a batch add to
SEED = 20_240_607
GRACE_SECONDS = 60.0

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from grader.problems.problem import Problem
    from grader.run.kind import ProblemKind


@dataclass
class Trace:
    """A file of events, of this process and of others that write to it, too."""

    path: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Write that ``name`` begins, and that it ends."""
        before = self._write("B", name, 0.0)
        try:
            yield
        finally:
            self._write("E", name, time.thread_time() - before)

    def _write(self, kind: str, name: str, processor: float) -> float:
        event = {
            "ph": kind,
            "name": name,
            "ts": time.monotonic() * 1e6,
            "pid": os.getpid(),
            "tid": threading.get_native_id(),
            "args": {"processor": processor},
        }
        with self._lock, self.path.open("a") as file:
            file.write(json.dumps(event) + ",\n")
        return time.thread_time()

    def events(self) -> list[dict[str, Any]]:
        """All that was written."""
        return [json.loads(line.rstrip(",\n")) for line in self.path.read_text().splitlines() if line != "["]

    def patched(self, owner: object, name: str, named: Callable[..., str] | None = None) -> Any:  # noqa: ANN401
        """A patch that writes each call of a function; ``named`` gets its arguments."""
        function = getattr(owner, name)
        shown = f"{getattr(owner, '__name__', '').rpartition('.')[2]}.{name}"

        @wraps(function)
        def run(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401
            with self.phase(named(*arguments) if named else shown):
                return function(*arguments, **options)

        return mock.patch.object(owner, name, run)

    def held(self, name: str) -> Any:  # noqa: ANN401
        """A patch that writes how long a GPU is waited for and held."""
        from grader.devices.sharing import Sharing  # noqa: PLC0415 - see ``watching``

        method = getattr(Sharing, name)

        @contextmanager
        def run(sharing: Sharing, *waiting: Any) -> Iterator[None]:  # noqa: ANN401
            with ExitStack() as stack:
                with self.phase(f"wait for the GPU, {name}"):
                    stack.enter_context(method(sharing, *waiting))
                with self.phase(f"has the GPU, {name}"):
                    yield

        return mock.patch.object(Sharing, name, run)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Write what the judge does as long as this is open."""
        from grader.batch import worker  # noqa: PLC0415 - importing PyTorch is a phase, too
        from grader.devices import runner, timed  # noqa: PLC0415
        from grader.devices.gpu import Gpu, GpuSession  # noqa: PLC0415
        from grader.devices.sim import Sim, SimModelSession, SimSession  # noqa: PLC0415
        from grader.judge.timing import measure, others, training  # noqa: PLC0415
        from grader.run import bench, grading, judging  # noqa: PLC0415

        remembered, kind_of = bench.remembered, judging.kind_of

        def watched_kind(problem: Problem) -> ProblemKind:
            kind = kind_of(problem)
            return replace(kind, prepare=self._wrapped(kind.prepare, f"prepare {problem.id}"))

        def watched(problem: Problem, *room: Any) -> Problem:  # noqa: ANN401
            inputs = self._wrapped(problem.inputs, f"inputs {problem.id}")
            oracle = self._wrapped(problem.oracle, f"oracle {problem.id}")
            return remembered(replace(problem, inputs=inputs, oracle=oracle), *room)

        with ExitStack() as stack:
            for module in (bench, judging):
                stack.enter_context(mock.patch.object(module, "remembered", watched))
            stack.enter_context(mock.patch.object(judging, "kind_of", watched_kind))
            for name in ("alone", "shared"):
                stack.enter_context(self.held(name))
            for owner, names in (
                (worker, ("answer",)),
                (grading, ("_build", "_time_pytorch", "_measure_all")),
                (bench, ("find_machine", "build_baseline")),
                (measure, ("_process", "_prepared")),
                (measure._Sweeps, ("heat", "too_slow", "measure", "_novel_sweeps")),
                (timed.TimedSession, ("add", "prepare", "fetch")),
                (training, ("_turns",)),
                (others.Process, ("result",)),
                (Gpu, ("open", "open_model", "open_timed")),
                (Sim, ("open", "open_model")),
                (GpuSession, ("run",)),
                (SimSession, ("run",)),
                (SimModelSession, ("run",)),
                (runner.Runner, ("_begin", "_end")),
            ):
                for name in names:
                    stack.enter_context(self.patched(owner, name))
            judge = judging.ProblemJudge
            stack.enter_context(self.patched(judge, "check", lambda one: f"check {one.id}"))
            stack.enter_context(self.patched(judge, "_measured", lambda one, *_: f"measure {one.id}"))
            stack.enter_context(
                self.patched(judge, "_run_cases", lambda one, device, *_: f"cases {one.id} {device.kind}")
            )
            yield

    def _wrapped(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:  # noqa: ANN401
            with self.phase(name):
                return function(*arguments)

        return run


def table(events: Sequence[Mapping[str, Any]]) -> list[tuple[str, int, float, float, int]]:
    """Name, number, seconds, processor seconds and how many have not ended of each phase, longest first."""
    began: dict[tuple[int, int, str], list[float]] = defaultdict(list)
    totals: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    for event in events:
        place = event["pid"], event["tid"], event["name"]
        if event["ph"] == "B":
            began[place].append(event["ts"])
            continue
        total = totals[event["name"]]
        total[0] += 1
        total[1] += (event["ts"] - began[place].pop()) / 1e6
        total[2] += event["args"]["processor"]
    open_ones: dict[str, int] = defaultdict(int)
    for (*_, name), starts in began.items():
        open_ones[name] += len(starts)
    rows = [
        (name, int(totals[name][0]), totals[name][1], totals[name][2], open_ones[name])
        for name in totals.keys() | {name for name, count in open_ones.items() if count}
    ]
    return sorted(rows, key=lambda row: -row[2])


def line_of_time(events: Sequence[Mapping[str, Any]], least: float) -> list[str]:
    """A line for each phase of at least so many seconds, in the order of their beginnings."""
    began: dict[tuple[int, int, str], list[float]] = defaultdict(list)
    lines: list[tuple[float, float, str]] = []
    first = min((event["ts"] for event in events), default=0.0)
    threads: dict[tuple[int, int], int] = {}
    for event in events:
        thread = event["pid"], event["tid"]
        number = threads.setdefault(thread, len(threads))
        if event["ph"] == "B":
            began[*thread, event["name"]].append(event["ts"])
            continue
        start = began[*thread, event["name"]].pop()
        if event["ts"] - start >= least * 1e6:
            lines.append((start - first, event["ts"] - first, f"thread {number:3} {event['name']}"))
    return [f"{start / 1e6:8.2f} {end / 1e6:8.2f}  {text}" for start, end, text in sorted(lines)]


def grade(options: argparse.Namespace, trace: Trace) -> None:
    """Grade a submission several times in one process."""
    with trace.phase("import"):
        from grader.assignments.assignment import load  # noqa: PLC0415
        from grader.problems.problem import KernelProblem  # noqa: PLC0415
        from grader.processes.threads import take_short_turns  # noqa: PLC0415
        from grader.run import grading  # noqa: PLC0415
        from grader.run.bench import Bench  # noqa: PLC0415
        from grader.run.options import GradingOptions  # noqa: PLC0415
    take_short_turns()
    assignment, how = load(options.assignment), GradingOptions(options.device)
    kernels = [name for name, one in assignment.problems.items() if isinstance(one, KernelProblem)]
    problems = tuple(options.problem or kernels)
    request = grading.GradingRequest(options.path, assignment, problems, how, SEED)
    with trace.watching():
        for number in range(options.times):
            with trace.phase(f"grading {number + 1}"):
                record = grading.grade(request, bench=Bench(remembers=True))
            for problem in record.problems:
                speed = problem.performance
                print(
                    f"grading {number + 1}: {record.seconds:.1f} s {problem.id} {problem.verdict} "
                    f"{problem.points.earned} {speed.verdict} {speed.speedup} {speed.interval} "
                    f"{speed.message} {problem.message}",
                    flush=True,
                )


def batch(options: argparse.Namespace, trace: Trace) -> None:
    """Grade a class; its workers write to the trace."""
    os.environ[TRACE] = str(trace.path)
    from grader.assignments.assignment import load  # noqa: PLC0415
    from grader.batch import batch as batches  # noqa: PLC0415
    from grader.run.options import GradingOptions  # noqa: PLC0415

    request = batches.BatchRequest(
        options.path,
        options.out,
        load(options.assignment),
        options=GradingOptions(options.device),
        seed=SEED,
        command=(sys.executable, __file__, "--worker"),
    )
    began = time.monotonic()
    if options.seconds:
        timer = threading.Timer(options.seconds, os.kill, (os.getpid(), signal.SIGINT))
        timer.daemon = True
        timer.start()

    def tell(step: batches.BatchProgress) -> None:
        if step.line:
            print(f"{time.monotonic() - began:6.1f} {step.line}", flush=True)

    with trace.phase("batch"):
        outcome = batches.run(request, tell)
    print("\n".join(batches.closing_lines(outcome)), flush=True)


def main() -> int:
    """Grade, and print where the time went."""
    if sys.argv[1:2] == ["--worker"]:
        del sys.argv[1]
        trace = Trace(Path(os.environ[TRACE]))
        with trace.phase("start of a worker"):
            from grader.batch import worker  # noqa: PLC0415
        with trace.watching():
            worker.main()
        return 0
    parser = argparse.ArgumentParser(description="Show where the time of a grading goes.")
    parser.add_argument("command", choices=("grade", "batch"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--assignment", default="llm_systems_3")
    parser.add_argument("--problem", nargs="+", help="only these; without it those that are kernels")
    parser.add_argument("--device", default="gpu", choices=("gpu", "sim"))
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, help="interrupt a batch then")
    parser.add_argument("--least", type=float, default=0.5, help="seconds of a phase that is a line")
    parser.add_argument("--trace", type=Path, metavar="F")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        trace = Trace(options.trace or Path(scratch, "trace.json"))
        trace.path.write_text("[\n")
        (batch if options.command == "batch" else grade)(options, trace)
        events = trace.events()
    print("\n".join(line_of_time(events, options.least)))
    print(f"{'phase':44} {'times':>6} {'seconds':>9} {'processor':>9} {'open':>5}")
    for name, count, seconds, processor, still_open in table(events):
        print(f"{name:44} {count:6} {seconds:9.2f} {processor:9.2f} {still_open or '':>5}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
