"""How a case of a kind of problem is called, and how what comes back is judged: the protocol of exchanges.

An exchange is the part of a kind of problem that the judge needs; ``cases.py`` knows no more of it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

from grader.devices.device import Status
from grader.records.placed import placed
from grader.records.record import CaseResult, GapRecord
from grader.records.verdict import Ending, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from grader.devices.device import Answer, Call, Memory, Schedule, Session
    from grader.problems.problem import Case, Problem
    from grader.records.diagnosis import Diagnosis

_VERDICTS = {
    Status.UNSUPPORTED: Verdict.NOT_MEASURED,
    Status.LOST: Verdict.INFRA_ERROR,
    Status.UNTRUSTED: Verdict.UNTRUSTED,
}
"""What an answer without arrays means; every other status is the student's code failing."""

_ENDINGS = {Status.UNBEGUN: Ending.UNBEGUN, Status.TIMEOUT: Ending.LIMIT, Status.LIMIT: Ending.LIMIT}


class Exchange(Protocol):
    """Calls cases of a kind of problem, and judges the answers."""

    @property
    def changed(self) -> Diagnosis:
        """What it means that a case is wrong, and was right in another call with the same content."""

    def idle(self, problem: Problem, answers: Sequence[Answer]) -> str:
        """Why no device has computed what is right, from the answers of all cases; "" if it may have."""

    def call(self, problem: Problem, case: Case, seconds: float, memory: Memory, schedule: Schedule) -> Call:
        """The call of a case, for a device.

        Args:
            problem: that the case belongs to.
            case: with the seed of its content.
            seconds: of processor time of the host code, on a GPU of device time, that the call may use.
            memory: which pointers launchers take.
            schedule: the order of execution.
        """

    def called(
        self,
        problem: Problem,
        content: Case,
        session: Session,
        schedule: Schedule,
        previous: Mapping[str, NDArray[np.generic]] | None,
        *,
        memory: Memory,
        seconds: float,
    ) -> tuple[CaseResult, Answer]:
        """Call a case in ``session``, and judge the answer, which comes back as well.

        ``previous`` are the arrays that the call before it left in the same process, if there was one.
        """


@dataclass(frozen=True)
class Observed:
    """An exchange that shows each call of a case to somebody: its content, its result and its answer."""

    exchange: Exchange
    observe: Callable[[Case, CaseResult, Answer], None]

    @property
    def changed(self) -> Diagnosis:
        """See ``Exchange``."""
        return self.exchange.changed

    def idle(self, problem: Problem, answers: Sequence[Answer]) -> str:
        """See ``Exchange``."""
        return self.exchange.idle(problem, answers)

    def call(self, problem: Problem, case: Case, seconds: float, memory: Memory, schedule: Schedule) -> Call:
        """See ``Exchange``."""
        return self.exchange.call(problem, case, seconds, memory, schedule)

    def called(
        self,
        problem: Problem,
        content: Case,
        session: Session,
        schedule: Schedule,
        previous: Mapping[str, NDArray[np.generic]] | None,
        *,
        memory: Memory,
        seconds: float,
    ) -> tuple[CaseResult, Answer]:
        """See ``Exchange``."""
        result, answer = self.exchange.called(
            problem, content, session, schedule, previous, memory=memory, seconds=seconds
        )
        self.observe(content, result, answer)
        return result, answer


def ended(case: Case, answer: Answer) -> CaseResult:
    """The result of a case whose answer has nothing to compare."""
    verdict = _VERDICTS.get(answer.status, Verdict.FAIL)
    gaps = [GapRecord(**asdict(gap)) for gap in answer.gaps]
    ending = _ENDINGS.get(answer.status, Ending.USUAL)
    result = failed(case, verdict, answer.message or answer.status, ending)
    return result.model_copy(update={"gaps": gaps})


def failed(case: Case, verdict: Verdict, message: str, ending: Ending = Ending.USUAL) -> CaseResult:
    """The result of a case that has no outputs to compare, with the place that the message begins with."""
    place = placed(message)
    return CaseResult(
        name=case.name,
        group=case.group,
        verdict=verdict,
        ending=ending,
        message=message,
        file=place.file if place else "",
        line=place.line if place else 0,
    )
