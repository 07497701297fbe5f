"""The times of other implementations, which are shown beside a speedup, and the process that measures them.

``pytorch.py`` is what that process runs.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from grader.records.record import PerformanceResult

STEPWISE, FUSED = "PyTorch, one operation at a time", "PyTorch, its own operator"
_WAYS = {STEPWISE: "one operation at a time", FUSED: "its own operator"}
WAIT_SECONDS = 240.0
READY = "ready"


@dataclass(frozen=True)
class Others:
    """Microseconds by problem, case and implementation, or the reason why there are none.

    Attributes:
        name: of PyTorch, with its version.
        absent: why nothing was timed.
        times: of the problems that could be timed.
        faults: why the others could not.
    """

    name: str = ""
    absent: str = ""
    times: Mapping[str, Mapping[str, Mapping[str, float]]] | None = None
    faults: Mapping[str, str] | None = None

    def beside(self, problem: str, performance: PerformanceResult) -> PerformanceResult:
        """``performance`` with these times and a line on each implementation.

        Whole calls with host pointers get none, because PyTorch's times cannot be compared with them.
        """
        measured = [case for case in performance.cases if case.yours_us and case.method != "host"]
        if not measured:
            return performance
        if why := self.absent or (self.faults or {}).get(problem, ""):
            return performance.model_copy(update={"info": [*performance.info, why]})
        mine = (self.times or {}).get(problem, {})
        cases = [case.model_copy(update={"others_us": mine.get(case.name, {})}) for case in performance.cases]
        lines = []
        for way, described in _WAYS.items():
            ratios = [
                math.log(case.others_us[way] / case.yours_us)
                for case in cases
                if case.yours_us and way in case.others_us
            ]
            if ratios:
                lines.append(f"{math.exp(fmean(ratios)):.2f}x the speed of {self.name}, {described}")
        return performance.model_copy(update={"cases": cases, "info": [*performance.info, *lines]})


class Process:
    """The process that measures. It starts at once, but uses the GPU only when asked for its result.

    ``wait_until_ready`` comes before that.
    """

    def __init__(self, assignment: Path, seed: int, problems: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            # -P: nothing is imported from the folder where the grader was started, such as a submission.
            [
                sys.executable,
                "-P",
                "-m",
                "grader.judge.timing.pytorch",
                str(assignment),
                str(seed),
                *problems,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_until_ready(self) -> None:
        """Wait until all is imported, or until the process has ended."""
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def result(self) -> Others:
        """Wait for the measured times and return them."""
        try:
            out, err = self._process.communicate("now\n", WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            return Others(absent=f"PyTorch was not timed: it took longer than {WAIT_SECONDS:g} s")
        if self._process.returncode != 0:
            last = (err.strip().splitlines() or [f"exit code {self._process.returncode}"])[-1]
            return Others(absent=f"PyTorch was not timed: {last}")
        return Others(**json.loads(out))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
