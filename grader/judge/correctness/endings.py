"""Which cases ended their runner, and whether the remaining cases are still worth a fresh one.

A case that runs into a limit takes long, so ``_MOST`` of these are enough. A crash or an exit is over at
once: where other cases pass, a launcher may just refuse some sizes, and these alone cost points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.devices.device import Status
from grader.records.verdict import Ending, Verdict

if TYPE_CHECKING:
    from grader.devices.device import Answer
    from grader.records.findings import Finding
    from grader.records.record import CaseResult

_MOST = 3
_FINAL = frozenset({Status.LOST, Status.UNTRUSTED})
"""After these no case is run: the machine does not work, or nothing that the runner says can be believed."""

_LIMITS = frozenset({Status.TIMEOUT, Status.LIMIT})


@dataclass(frozen=True)
class End:
    """Why no further case is run, and the verdict of the remaining cases."""

    verdict: Verdict
    message: str
    ending: Ending = Ending.NOT_RUN


class Endings:
    """The cases that ended their runner so far."""

    def __init__(self) -> None:
        self._crashed: list[str] = []
        self._limited: list[str] = []
        self._passed = False
        self._end: End | None = None

    @property
    def machine_failed(self) -> bool:
        """Whether the machine ended a case, and so all that followed."""
        return self._end is not None and self._end.verdict is Verdict.INFRA_ERROR

    def take(self, result: CaseResult, answer: Answer) -> None:
        """Record how a case ended."""
        self._passed |= result.verdict is Verdict.PASS
        if answer.status in _FINAL:
            self.end_all(result)
        elif answer.goes_on or answer.status is Status.UNSUPPORTED or result.waived or explained(answer):
            return
        elif answer.status in _LIMITS or hung(answer):
            self._limited.append(result.name)
        else:
            self._crashed.append(result.name)

    def end_all(self, result: CaseResult) -> None:
        """No further case can run, for the reason that ``result`` gives."""
        fault = result.verdict is Verdict.INFRA_ERROR
        if fault:
            self._end = End(result.verdict, result.message, Ending.USUAL)
        else:
            self._end = End(result.verdict, f"not run: {result.name} ended the runner")

    def of_all(self) -> End | None:
        """Why no further case is run; None where the next one is."""
        ended = [*self._limited, *(() if self._passed else self._crashed)]
        if self._end is None and len(ended) >= _MOST:
            return End(Verdict.FAIL, f"not run: {len(ended)} cases ended the runner ({', '.join(ended)})")
        return self._end


def findings_of(answer: Answer) -> tuple[Finding, ...]:
    """The findings of an answer; guard zones, where there are any, stand in for memcheck."""
    return (*answer.findings, *answer.overrun)


def counting_kinds(answer: Answer) -> frozenset[str]:
    """The kinds of findings that cost points."""
    return frozenset(finding.kind for finding in findings_of(answer) if finding.counts)


def hung(answer: Answer) -> bool:
    """Whether the simulator ended a kernel that did not end by itself."""
    return any(finding.tool == "hang" for finding in answer.findings)


def explained(answer: Answer) -> bool:
    """Whether a checker saw, and soon, why a kernel failed: other cases may still have right numbers."""
    return answer.status is Status.CUDA_ERROR and bool(counting_kinds(answer)) and not hung(answer)
