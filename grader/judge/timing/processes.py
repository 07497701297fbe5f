"""Measures how much faster a program is than the assignment's reference, in fresh processes.

The two run in turn, on the same content, in blocks as those of ``measure``. What is timed is the whole
process, by the clock of its sandbox, or a region whose time the program prints. A program cannot keep
anything from one run for the next. So each part of a measurement, of which two have to agree, is just more
such blocks, on other content. The output of every run is judged as that of a case.
"""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from random import Random, SystemRandom
from typing import TYPE_CHECKING

from grader.devices.device import Memory, Schedule, Status
from grader.judge.correctness.programs import PROGRAMS, judged, judged_files
from grader.judge.timing import speed
from grader.judge.timing.measure import ENDS, UNTIL_CLEAR, against, concluded, in_turn, unmeasured
from grader.judge.timing.statistics import PROCESS, REGION, Block, CaseTimes, clear, combined
from grader.problems.program import STDOUT
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from grader.devices.condition import Condition
    from grader.devices.device import Answer, Session
    from grader.judge.timing.measure import Effort, Measured
    from grader.judge.timing.statistics import Goal
    from grader.problems.problem import Case
    from grader.problems.program import ProgramProblem

MOST_BLOCKS = 20  # of a case in one part; one has six processes, each of which takes a second with a GPU
UNITS: Mapping[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
"""Seconds of the named groups in which a pattern of a region has its time."""


@dataclass(frozen=True)
class ProgramTiming:
    """What does not change during one measurement.

    Attributes:
        problem: the problem whose timing cases are run.
        sessions: run the program of the submission, ``B``, and the reference, ``A``.
        seed: of the content.
        seconds: time-out of a run.
        progress: called with a text on what comes next; an exception that it raises ends the measurement.
        look: returns the condition of the device, given a name for the moment; None where it is unknown.
        alone: makes a context in which nobody else uses the GPU.
        effort: how much is measured.
    """

    problem: ProgramProblem
    sessions: Mapping[str, Session]
    seed: int
    seconds: float
    progress: Callable[[str], None]
    look: Callable[[str], Condition | None] = lambda _moment: None
    alone: Callable[[], AbstractContextManager[object]] = nullcontext
    effort: Effort = UNTIL_CLEAR


class _EndedError(Exception):
    """A run whose time does not count: it ended otherwise, or its output is wrong."""

    def __init__(self, verdict: Verdict, message: str) -> None:
        super().__init__(message)
        self.verdict = verdict


def measure_programs(timing: ProgramTiming, goal: Goal) -> Measured:
    """Run both programs until two parts agree, or as often as ``statistics`` allows."""
    parts: list[list[CaseTimes]] = []
    looks = [timing.look("before timing")]
    try:
        while speed.verdict(parts, goal.target) is None:
            parts.append(_part(timing, goal, len(parts)))
            looks.append(timing.look(f"at the end of part {len(parts)}"))
    except _EndedError as error:
        return unmeasured(error.verdict, goal.target, str(error))
    return concluded(parts, goal.target, [None] * len(parts[0]), looks)


def _part(timing: ProgramTiming, goal: Goal, index: int) -> list[CaseTimes]:
    """The blocks of all timing cases, until the verdict is clear or there are as many as there may be.

    Raises:
        _EndedError: a run does not count.
    """
    problem = timing.problem
    source = Random(f"{timing.seed}/{problem.id}/{index}")
    cases = problem.timing_cases(timing.seed)
    turns = [_Turns(timing, replace(case, seed=source.getrandbits(48))) for case in cases]
    looks = sorted({min(look, MOST_BLOCKS) for look in timing.effort.looks[index]})
    for blocks in looks:
        for case in turns:
            timing.progress(f"{problem.id}: timing {case.name}, part {index + 1}, {blocks} blocks")
            with timing.alone():
                case.run_until(blocks)
        times = [case.times() for case in turns]
        if speed.doubts(times) or clear(*combined(times), goal):
            break
    return times


@dataclass
class _Seen:
    """What was measured of one case until now; see ``CaseTimes``."""

    pairs: list[Block] = field(default_factory=list)
    same: list[Block] = field(default_factory=list)
    around: list[Block] = field(default_factory=list)
    looks: list[int] = field(default_factory=list)
    verified: int = 0


class _Turns:
    """The runs of both programs on one case, whose content they share."""

    def __init__(self, timing: ProgramTiming, case: Case) -> None:
        self._timing, self._case = timing, case
        self._call = PROGRAMS.call(timing.problem, case, timing.seconds, Memory.DEVICE, Schedule.PROGRAM)
        self._random = SystemRandom()
        self._seen = _Seen()
        self._right: dict[str, Answer] = {}
        self.name = case.name

    def run_until(self, blocks: int) -> None:
        """Run more blocks until there are so many; the first one is preceded by a run of each program.

        Raises:
            _EndedError: a run does not count.
        """
        seen = self._seen
        if not seen.pairs:
            for arm in ("A", "B"):
                self._seconds(arm)
        while len(seen.pairs) < blocks:
            order = in_turn(self._random)
            runs = [self._seconds("B" if arm == "B" else "A") for arm in order]
            pair, same = against(order, [seconds for seconds, _ in runs])
            seen.pairs.append(pair)
            seen.same.append(same)
            if self._timing.problem.region:
                around, _ = against(order, [rest for _, rest in runs])
                seen.around.append(around)
        if self._timing.effort.sequential:
            seen.looks.append(blocks)

    def times(self) -> CaseTimes:
        """What was measured until now."""
        seen = self._seen
        return CaseTimes(
            case=self.name,
            method=REGION if self._timing.problem.region else PROCESS,
            slots=1,
            blocks=tuple(seen.pairs),
            same=tuple(seen.same),
            stream=(),
            novel=(),
            batches=(),
            verified=seen.verified,
            wrong=0,
            looks=tuple(seen.looks),
            around=tuple(seen.around),
        )

    def _seconds(self, arm: str) -> tuple[float, float]:
        """The seconds that count of one run, and those of the rest of its process.

        Raises:
            _EndedError: the run does not count.
        """
        answer = self._timing.sessions[arm].run(self._call)
        region = self._timing.problem.region
        try:
            self._check(arm, answer)
            if not region:
                return answer.seconds, 0.0
            printed = answer.files[STDOUT].decode(errors="replace")
            seconds = seconds_of(region, printed, answer.seconds)
        except (ValueError, _EndedError) as error:
            verdict = error.verdict if isinstance(error, _EndedError) else Verdict.FAIL
            if arm == "A":
                raise _EndedError(Verdict.INFRA_ERROR, f"the reference on {self.name}: {error}") from error
            raise _EndedError(verdict, f"{self.name}: {error}") from error
        self._seen.verified += arm == "B"
        return seconds, answer.seconds - seconds

    def _check(self, arm: str, answer: Answer) -> None:
        """Check that the run of ``arm`` ended as it must, with the right output.

        Most programs write the same bytes each time, and to compare millions of numbers takes longer than a
        run. So an answer that equals one that was right is not compared again.

        Raises:
            _EndedError: it did not.
        """
        if not answer.usable:
            raise _EndedError(ENDS.get(answer.status, Verdict.FAIL), answer.message or str(Status.LOST))
        assert self._call.run is not None
        files = judged_files(self._timing.problem, self._call.run, answer)
        answer = replace(answer, files=files, seconds=0.0, printed="")
        if answer == self._right.get(arm):
            return
        result = judged(self._timing.problem, self._case, self._call.run, answer)
        if result.verdict is not Verdict.PASS:
            causes = [diagnosis.cause for diagnosis in result.diagnoses]
            raise _EndedError(result.verdict, result.message or "; ".join(causes))
        self._right[arm] = answer


def seconds_of(region: str, printed: str, process: float) -> float:
    """The seconds that a program printed of its region, all of them added.

    Args:
        region: a regular expression, whose time is in a group named as one of ``UNITS``.
        printed: by the program.
        process: seconds that all of it took.

    Raises:
        ValueError: it printed none, or one that is no positive number, or more than its process took.
    """
    seconds = 0.0
    for match in re.finditer(region, printed):
        for unit, text in match.groupdict().items():
            seconds += UNITS[unit] * float(text) if text is not None else 0.0
    if not seconds > 0:
        raise ValueError("it printed no time of the region that is timed, or none above 0")
    if not seconds < process:
        told, took = (f"{1e3 * time:.4g} ms" for time in (seconds, process))
        raise ValueError(f"it printed {told} for the region that is timed, and ran for {took}")
    return seconds
