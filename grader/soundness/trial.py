"""Runs cases of a kernel one at a time in one session, to stop at the first that goes wrong.

Layer: imports problems, devices, assignments, judge and records.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from grader.assignments.rules import AssignmentError
from grader.judge.correctness.arrays import ARRAYS
from grader.judge.correctness.cases import judge
from grader.records.errors import DeviceError
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from grader.devices.device import Answer, Call, Memory, Schedule, Session
    from grader.judge.correctness.cases import Excuse
    from grader.judge.correctness.exchange import Exchange
    from grader.problems.problem import Case, Problem
    from grader.records.findings import Finding
    from grader.records.record import OutputResult


@dataclass(frozen=True)
class Shown:
    """The result of one case.

    Attributes:
        wrong: what went wrong, in words; "" if nothing did.
        reported: the findings that cost no points, as tool and kind.
        answers: of the device, in the order of the calls.
        outputs: how far each output is from the oracle.
    """

    wrong: str
    reported: frozenset[str]
    answers: tuple[Answer, ...]
    outputs: tuple[OutputResult, ...]


@dataclass
class _Lasting:
    """A session that several judgings use; it is opened again where it could not go on."""

    open: Callable[[], Session]
    answers: list[Answer] = field(default_factory=list)
    session: Session | None = None

    def opened(self) -> Session:
        if self.session is None:
            self.session = self.open()
        return self

    def run(self, call: Call) -> Answer:
        self.opened()
        assert self.session is not None
        answer = self.session.run(call)
        self.answers.append(answer)
        if not answer.goes_on or answer.overrun:
            self.end()
        return answer

    def close(self) -> None:
        """Stay open for the next judging."""

    def end(self) -> None:
        if self.session is not None:
            self.session.close()
        self.session = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class Trial:
    """A launcher and what is needed to run cases of it."""

    def __init__(
        self,
        problem: Problem,
        session: _Lasting,
        memory: Memory,
        seconds: float,
        excuses: Mapping[str, Excuse],
        exchange: Exchange = ARRAYS,
    ) -> None:
        self._exchange = exchange
        self._problem = replace(problem, bugs={})  # what a mutant does wrong is known: nothing to find out
        self._session = session
        self._memory = memory
        self._seconds = seconds
        self._excuses = excuses

    def run(self, case: Case, schedules: Sequence[Schedule]) -> Shown:
        """Judge one case under these orders of execution, or as many of them as it asks for.

        Raises:
            DeviceError: the machine failed.
            AssignmentError: the checker of the problem did.
        """
        self._session.answers.clear()
        judged = judge(
            self._problem,
            (case,),
            self._session.opened,
            schedules,
            memory=self._memory,
            seconds=self._seconds,
            excuses=self._excuses,
            exchange=self._exchange,
        )
        (result,) = judged.cases
        if judged.machine_failed:
            raise DeviceError(result.message or "the device failed")
        if result.verdict is Verdict.INFRA_ERROR:  # not of the machine: the checker failed
            raise AssignmentError(result.message)
        faults = []
        if result.verdict not in {Verdict.PASS, Verdict.NOT_MEASURED}:
            faults.append(result.message or result.diagnosis or result.verdict)
        faults += [_named(finding) for finding in judged.findings if finding.counts]
        return Shown(
            "; ".join(faults),
            frozenset(_named(finding) for finding in judged.findings if not finding.counts),
            tuple(self._session.answers),
            tuple(result.outputs),
        )


def _named(finding: Finding) -> str:
    return f"{finding.tool}: {finding.kind}"


@contextmanager
def trial(
    problem: Problem,
    open_session: Callable[[], Session],
    memory: Memory,
    seconds: float,
    excuses: Mapping[str, Excuse],
    exchange: Exchange = ARRAYS,
) -> Iterator[Trial]:
    """A trial of a launcher that ``open_session`` loads, until the end of the context.

    Args:
        problem: that it answers, with its entry point.
        open_session: starts a runner with it.
        memory: which pointers it takes.
        seconds: that a call may use.
        excuses: what the assignment does not hold against it, by the names of cases.
        exchange: calls its cases, and judges what comes back.
    """
    with _Lasting(open_session) as session:
        yield Trial(problem, session, memory, seconds, excuses, exchange)
