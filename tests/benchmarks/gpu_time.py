"""How long a grading takes, and for how long of that it keeps others from the GPU.

    python tests/benchmarks/gpu_time.py [PATH] [--assignment ID] [--problem P ...] [--device gpu] [--precise]
                                        [--times N] [--seconds S] [--json F]

Each problem of the submission (by default of the reference) is graded by itself, in one process, after all
is built and one of them was graded a first time, which is not counted. For each problem it says the seconds
of the grading, how long it had the GPU alone and how long it waited for that, how long it used it beside
others, and what it did meanwhile: the requests to the runner by what they ask for. All is written to F as it
comes.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import json
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from grader.assignments.assignment import load
from grader.devices.gpu import Gpu
from grader.devices.sharing import Sharing
from grader.devices.timed import TimedSession
from grader.judge.timing.verification import Verifier
from grader.problems.problem import KernelProblem
from grader.processes.threads import take_short_turns
from grader.run import grading
from grader.run.bench import Bench
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grader.devices.sharing import Waiting
    from grader.records.record import ProblemResult

REFERENCE = Path(__file__).parents[2] / "reference"
SEED = 20_240_607
ASKED = ("prepare", "add", "sweep", "batch", "keep", "fetch")  # of a timed session


@dataclass
class Account:
    """Seconds by what they were spent on, and how often that happened."""

    seconds: Counter[str] = field(default_factory=Counter)
    times: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def spent(self, what: str) -> Iterator[None]:
        """Add the seconds while this is open."""
        began = time.perf_counter()
        try:
            yield
        finally:
            with self._lock:
                self.seconds[what] += time.perf_counter() - began
                self.times[what] += 1

    def counted(self, owner: type, name: str, named: Callable[..., str]) -> Any:  # noqa: ANN401 - a patch
        """A patch that adds the seconds of a method; ``named`` gets its arguments."""
        method = getattr(owner, name)

        @wraps(method)
        def run(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401
            with self.spent(named(*arguments[1:])):
                return method(*arguments, **options)

        return mock.patch.object(owner, name, run)

    def held(self, name: str) -> Any:  # noqa: ANN401
        """A patch that adds the seconds for which a GPU was held, and those of waiting for it."""
        method = getattr(Sharing, name)

        @contextmanager
        def run(sharing: Sharing, *waiting: Waiting) -> Iterator[None]:
            with ExitStack() as stack:
                with self.spent(f"wait to have it {name}"):
                    stack.enter_context(method(sharing, *waiting))
                with self.spent(name):
                    yield

        return mock.patch.object(Sharing, name, run)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count as long as this is open."""
        with ExitStack() as stack:
            for name in ("alone", "shared"):
                stack.enter_context(self.held(name))
            for name in ASKED:
                stack.enter_context(self.counted(TimedSession, name, _named(name)))
            stack.enter_context(self.counted(Gpu, "open_timed", lambda *_: "open"))
            stack.enter_context(self.counted(Verifier, "settle", lambda *_: "wait for comparisons"))
            yield


def _named(name: str) -> Callable[..., str]:
    if name in {"sweep", "batch"}:
        return lambda arm, *_: f"{name} {arm}"
    return lambda *_: name


def row(account: Account, seconds: float, result: ProblemResult) -> dict[str, Any]:
    """What is kept of the grading of a problem."""
    performance = result.performance
    samples = performance.cases[0].samples if performance.cases else {}
    return {
        "seconds": round(seconds, 2),
        "alone": round(account.seconds["alone"], 2),
        "verdict": result.verdict.value,
        "points": result.points.earned,
        "speed": performance.verdict.value,
        "speedup": performance.speedup,
        "interval": performance.interval,
        "message": performance.message,
        "info": performance.info,
        "reasons": result.trust.reasons,
        "looks": {name: values for name, values in samples.items() if name.endswith("looks")},
        "cases": {case.name: [case.speedup, case.yours_us, case.floor] for case in performance.cases},
        "spent": {
            what: [round(spent, 3), account.times[what]] for what, spent in account.seconds.most_common()
        },
    }


def main() -> int:
    """Grade, and print a line for each problem."""
    parser = argparse.ArgumentParser(description="Measure how long grading takes and holds the GPU.")
    parser.add_argument("path", type=Path, nargs="?", default=REFERENCE)
    parser.add_argument("--assignment", default="llm_systems_3")
    parser.add_argument("--problem", nargs="+", help="only these; without it those that are kernels")
    parser.add_argument("--device", default="gpu", choices=("gpu", "sim"))
    parser.add_argument("--precise", action="store_true", help="as ``grader grade --precise`` measures")
    parser.add_argument("--times", type=int, default=1, help="gradings of each problem")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing after this time")
    parser.add_argument("--json", type=Path, metavar="F")
    options = parser.parse_args()
    take_short_turns()
    assignment = load(options.assignment)
    kernels = [name for name, one in assignment.problems.items() if isinstance(one, KernelProblem)]
    problems, bench, began = options.problem or kernels, Bench(remembers=True), time.monotonic()
    found: dict[str, list[dict[str, Any]]] = {}

    def request(*names: str, precise: bool = False) -> grading.GradingRequest:
        how = GradingOptions(options.device, precise=precise)
        return grading.GradingRequest(options.path, assignment, names, how, SEED)

    def graded(problem: str, *, precise: bool) -> tuple[Account, float, ProblemResult]:
        account, start = Account(), time.monotonic()
        with account.watching():
            record = grading.grade(request(problem, precise=precise), bench=bench)
        (result,) = record.problems
        if record.error:
            print(record.error)
        return account, time.monotonic() - start, result

    grading.build_ahead(request(*problems), bench)
    print(f"everything is built after {time.monotonic() - began:.1f} s", flush=True)
    _, seconds, _ = graded(problems[-1], precise=False)
    print(f"first grading: {seconds:.1f} s", flush=True)
    for problem in [one for _ in range(options.times) for one in problems]:
        if time.monotonic() - began > options.seconds:
            break
        account, seconds, result = graded(problem, precise=options.precise)
        found.setdefault(problem, []).append(row(account, seconds, result))
        print(
            f"{problem:20} {seconds:6.1f} s, GPU alone {account.seconds['alone']:5.1f} s, beside others "
            f"{account.seconds['shared']:5.1f} s; {result.performance.verdict} "
            f"{result.performance.speedup or 0:.3f}x {result.performance.message}",
            flush=True,
        )
        if options.json:
            options.json.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
