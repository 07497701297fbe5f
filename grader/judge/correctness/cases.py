"""Drives the cases of one problem through a device and judges every answer against the oracle.

A case passes if it passes in every order of execution that the device offers, or in as many of them as it
asks for. A case that ends its runner costs only that case: the next one gets a fresh runner. Only where
cases end runners again and again are the remaining ones not run; see ``endings.py``. A case that fails in a
runner behind a write that may have left a guard zone is judged in a fresh one: that may be the cause.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from grader.devices.device import LoadError, Schedule
from grader.devices.hints import hints, summed
from grader.judge.correctness import places
from grader.judge.correctness.arrays import ARRAYS
from grader.judge.correctness.counted import Counted, counted
from grader.judge.correctness.diagnosis import NOTHING_WRITTEN
from grader.judge.correctness.endings import Endings, counting_kinds, findings_of
from grader.judge.correctness.exchange import failed
from grader.judge.correctness.last_stores import taken_over
from grader.problems.threads import keep_to_one_thread
from grader.records.diagnosis import Diagnosis, as_question
from grader.records.errors import DeviceError, MachineError
from grader.records.findings import KINDS, OVERFLOW, OVERRUN
from grader.records.record import CaseResult
from grader.records.verdict import Ending, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    import numpy as np
    from numpy.typing import NDArray

    from grader.devices.device import Answer, Call, Hint, Memory, Session
    from grader.judge.correctness.exchange import Exchange
    from grader.problems.problem import Case, Inputs, Problem
    from grader.records.findings import Finding, LineCount

    _Arrays = Mapping[str, NDArray[np.generic]]
    _Calling = Callable[[Case, Session, Schedule, _Arrays | None], tuple[CaseResult, Answer]]

_ORDER = Diagnosis("order", f"right in {Schedule.PROGRAM}, so the result depends on the order of execution")
_ORDERS = {
    Schedule.REVERSED: as_question(
        "reversed", _ORDER.cause, "does a block or a warp rely on another one that came before it?"
    ),
    Schedule.LATE_STREAMS: as_question(
        "late_streams",
        _ORDER.cause,
        "does work on one stream, or the host, use what another stream has yet to write, with no event or "
        "synchronisation between the two?",
    ),
}
"""What an order that goes wrong, where program order does not, is likely to have shown."""
_OTHER_STREAM = as_question(
    "other_stream",
    "right with inputs and outputs in place, wrong when they come and go on the given streams",
    "is work on another stream (the default one, one of your own) that no event orders with those given?",
)
_QUEUED = as_question(
    "queued",
    "right alone, wrong when a call of other sizes or numbers comes behind it before its kernels have run",
    "do they read what the next call overwrites at once (a __constant__ or static variable, pinned memory)?",
)


@dataclass(frozen=True)
class Excuse:
    """What an assignment does not hold against a kernel in one case.

    Attributes:
        kinds: the kinds of findings that cost nothing there; without any the case is not run at all.
        reason: why, for people.
        numbers: whether it costs nothing either that the case fails.
    """

    kinds: frozenset[str]
    reason: str
    numbers: bool = False

    def explains(self, answers: Sequence[Answer]) -> bool:
        """Whether all that went wrong in ``answers``, and something did, is excused."""
        kinds = [counting_kinds(answer) for answer in answers]
        return any(kinds_of_call & self.kinds for kinds_of_call in kinds) and all(
            all(kind in self.kinds or KINDS[kind].consequence for kind in kinds_of_call)
            if kinds_of_call
            else answer.usable
            for kinds_of_call, answer in zip(kinds, answers, strict=True)
        )


@dataclass(frozen=True)
class Judged:
    """What the cases of one problem showed on one device."""

    cases: tuple[CaseResult, ...]
    findings: tuple[Finding, ...] = ()  # that count
    waived: Mapping[Finding, str] = field(default_factory=dict)  # that do not, and why
    hints: tuple[Hint, ...] = ()
    counted: Counted = field(default_factory=Counted)
    printed: str = ""
    summary: str = ""  # one line where every case says the same
    machine_failed: bool = False  # in the middle of them, which says nothing of the submission

    @property
    def untrusted(self) -> tuple[str, ...]:
        """Why the answers cannot be believed, if they cannot."""
        return tuple(
            case.message for case in self.cases if case.verdict is Verdict.UNTRUSTED and case.message
        )


def judge(
    problem: Problem,
    cases: Sequence[Case],
    open_session: Callable[[], Session],
    schedules: Sequence[Schedule],
    *,
    memory: Memory,
    seconds: float,
    begin: Callable[[Case], None] = lambda _case: None,
    excuses: Mapping[str, Excuse] | None = None,
    lacks: Callable[[Case], str] = lambda _case: "",
    hinted: Callable[[Case], bool] = lambda _case: True,
    observe: Callable[[Case, Answer], None] = lambda _case, _answer: None,
    exchange: Exchange = ARRAYS,
    ended: Callable[[], bool] = lambda: False,
) -> Judged:
    """Run ``cases`` one after the other, each under every schedule or its first ``orders``, and compare.

    Args:
        problem: what the cases belong to.
        cases: what to run; ``begin`` is told before each.
        open_session: starts a runner with the library loaded.
        schedules: the orders of execution.
        memory: which pointers the entry point takes.
        seconds: of processor time of the host code, on a GPU of device time, that a call may use.
        begin: called with each case before it runs; what it raises ends the judging.
        excuses: what is not held against the submission, by the names of cases.
        lacks: why a case cannot be called at all; empty where it can.
        hinted: whether hints on speed come from a case.
        observe: called with each case that ran and the answer in the first order.
        exchange: calls a case of this kind of problem, and judges the answer.
        ended: says whether no more is to be judged. A case during which that comes is none of the results:
            what ends it may have closed its session.
    """
    calling = partial(exchange.called, problem, memory=memory, seconds=seconds)
    results: list[CaseResult] = []
    answers: list[Answer] = []
    counts: list[LineCount] = []
    in_all = Counted()
    findings = _Findings()
    previous: Mapping[str, NDArray[np.generic]] | None = None
    endings = Endings()
    doubtful: dict[int, Case] = {}
    with closing(_Sessions(open_session)) as sessions:
        for case in cases:
            excuse = (excuses or {}).get(case.name)
            if (skipped := _skipped(case, excuse, endings, lacks(case))) is not None:
                results.append(skipped)
                continue
            begin(case)
            content_of = partial(_content, problem, case)
            called = partial(_judge_case, calling, exchange.changed, case, content_of, schedules, previous)
            outcome = _unless_ended(ended, lambda: sessions.judged(case, called))  # noqa: B023 - called at once
            if outcome is None:
                break
            if isinstance(outcome, CaseResult):
                endings.end_all(outcome)
                results.append(outcome)
                continue
            if outcome.wrong is not None:
                doubtful[len(results)] = outcome.wrong
            result = findings.take(case, outcome.result, outcome.answers, excuse)
            results.append(result)
            answers += outcome.answers
            observe(case, outcome.answers[0])
            in_all = in_all.joined(counted(case, outcome.answers[0], typical=hinted(case)))
            if hinted(case):
                counts += (count for answer in outcome.answers for count in answer.counts)
            previous = outcome.last.arrays
            endings.take(result, outcome.last)
    if findings.outside is not None and not ended():
        call = exchange.call(problem, findings.outside, seconds, memory, Schedule.OVERFLOW)
        findings.add(_overflows(call, findings.outside, open_session))
    first_and_last = list(doubtful.values())[:: max(1, len(doubtful) - 1)]
    if not ended() and any(
        _right_alone(calling, doubted, open_session, schedules[0]) for doubted in first_and_last
    ):
        results = [
            _noted(result, exchange.changed) if index in doubtful else result
            for index, result in enumerate(results)
        ]
    if idle := exchange.idle(problem, answers):
        results = [_idle(result, idle) for result in results]
    return Judged(
        cases=tuple(results),
        findings=tuple(findings.counting),
        waived={
            finding: reason for finding, reason in findings.waived.items() if finding not in findings.counting
        },
        hints=hints(counts),
        counted=in_all,
        printed="".join(answer.printed for answer in answers),
        summary=_summary(results),
        machine_failed=endings.machine_failed,
    )


def _idle(result: CaseResult, reason: str) -> CaseResult:
    """A case that fails for this reason if nothing else is wrong."""
    if result.verdict is not Verdict.PASS:
        return result
    return result.model_copy(update={"verdict": Verdict.FAIL, "message": reason})


def _unless_ended(
    ended: Callable[[], bool], judge: Callable[[], _Outcome | CaseResult]
) -> _Outcome | CaseResult | None:
    """What ``judge`` sees, unless the judging has ended before or meanwhile."""
    try:
        outcome = None if ended() else judge()
    except MachineError:
        if not ended():
            raise
        return None
    return None if ended() else outcome


def work_out(
    problem: Problem, cases: Sequence[Case], schedules: Sequence[Schedule], ended: Callable[[], bool]
) -> None:
    """Let ``problem`` remember what ``judge`` will ask it for each case and schedule, until it has ``ended``.

    Args:
        problem: one that remembers; see ``remembered``.
        cases: in the order in which they are judged.
        schedules: the orders of execution.
        ended: says whether nobody needs it any more.
    """
    for case in cases:
        for number, _ in _orders(case, schedules, ()):
            if ended():
                return
            content = _content(problem, case, number)
            problem.oracle(content, problem.inputs(content))


class WorkedOutAhead:
    """Works out in threads what ``judge`` will ask of the next cases, which are large and run in one order.

    No more than ``count`` cases are ahead of the one that runs, because of the memory that they take. The
    first ones begin at once.
    """

    def __init__(self, problem: Problem, cases: Sequence[Case], count: int) -> None:
        """``problem`` is one that remembers what somebody still has; see ``remembered``."""
        self._problem, self._count = problem, count
        self._coming = deque(cases)
        self._held: deque[tuple[Case, Future[Inputs]]] = deque()
        self._pool = ThreadPoolExecutor(count, initializer=keep_to_one_thread)
        self._go_on()

    def begin(self, case: Case) -> None:
        """Let go of what came before ``case``, which runs next, and work out others."""
        while self._held and self._held[0][0] != case:
            self._held.popleft()
        self._go_on()

    def _go_on(self) -> None:
        while self._coming and len(self._held) <= self._count:
            case = self._coming.popleft()
            self._held.append((case, self._pool.submit(self._work_out, case)))

    def _work_out(self, case: Case) -> Inputs:
        inputs = self._problem.inputs(case)
        if case.at_places:
            places.work_out(self._problem, case, inputs)
        return inputs

    def close(self) -> None:
        """Work out no more."""
        self._pool.shutdown(cancel_futures=True)
        self._held.clear()


@dataclass(frozen=True)
class _Outcome:
    """What one case showed in one session.

    Attributes:
        result: of the case.
        answers: behind it.
        right_once: whether the first call was right.
        wrong: a content that is wrong in program order, where calls before it were right: either it is the
            numbers, or something was kept when others came.
    """

    result: CaseResult
    answers: Sequence[Answer]
    right_once: bool
    wrong: Case | None = None

    @property
    def last(self) -> Answer:
        """The last answer."""
        return self.answers[-1]


class _Sessions:
    """Sessions, one at a time, each for as many cases as it can take."""

    def __init__(self, open_session: Callable[[], Session]) -> None:
        self._open_session = open_session
        self._session: Session | None = None
        self._right_before = self._strayed = False  # in this session

    def judged(self, case: Case, judge: Callable[[Session], _Outcome]) -> _Outcome | CaseResult:
        """What ``judge`` sees in a session; the result of ``case`` if none can be opened."""
        if self._session is None:
            opened = _open(case, self._open_session)
            if isinstance(opened, CaseResult):
                return opened
            self._session, self._right_before, self._strayed = opened, False, False
        outcome = judge(self._session)
        if self._strayed and outcome.result.verdict is Verdict.FAIL:
            self.close()
            return self.judged(case, judge)
        if not self._right_before and not outcome.right_once:
            outcome = replace(outcome, wrong=None)
        self._right_before |= outcome.right_once
        self._strayed |= any(answer.strayed for answer in outcome.answers)
        if not outcome.last.goes_on:
            self.close()
        return outcome

    def close(self) -> None:
        """Close the session that is open."""
        if self._session is not None:
            self._session.close()
        self._session = None


class _Findings:
    """What the checkers saw in all cases, what counts apart from what does not; each once, in order."""

    def __init__(self) -> None:
        self.counting: dict[Finding, None] = {}
        self.waived: dict[Finding, str] = {}
        self.outside: Case | None = None  # the first one that accesses what is outside of an array

    def add(self, findings: Sequence[Finding]) -> None:
        """Add what is seen beside the cases' own calls."""
        self.counting |= dict.fromkeys(findings)

    def take(
        self, case: Case, result: CaseResult, answers: Sequence[Answer], excuse: Excuse | None
    ) -> CaseResult:
        """Add the findings of a case; returns its result, waived if nothing else than those made it fail."""
        excused = excuse is not None and excuse.explains(answers)
        if excuse is None and any(
            finding.kind == OVERRUN for answer in answers for finding in answer.findings
        ):
            self.outside = self.outside or case
        for finding in (finding for answer in answers for finding in findings_of(answer)):
            if excuse is not None and excused and finding.counts:
                self.waived[finding] = excuse.reason
            else:
                self.counting[finding] = None
        if excuse is None or result.verdict is not Verdict.FAIL:
            return result
        by_findings = excused and not any(output.bad for output in result.outputs)
        return _waived(result, excuse) if by_findings or excuse.numbers else result


def _noted(result: CaseResult, *notes: Diagnosis | None) -> CaseResult:
    """``result`` with ``notes`` in front of its diagnoses."""
    return result.model_copy(update={"diagnoses": [*filter(None, notes), *result.diagnoses]})


def _undefined(answer: Answer) -> Diagnosis | None:
    """The first shuffle that took what no thread of its mask gave; None if there is none."""
    lines = [(line.file, line.line) for line in summed(answer.counts) if line.undefined_lanes]
    if not lines:
        return None
    file, line = min(lines)
    cause = (
        f"the shuffle at {file}:{line} takes values of threads that its mask does not name: they are "
        "undefined, and none may be used"
    )
    return Diagnosis("undefined_shuffle", cause, file=file, line=line)


def _waived(result: CaseResult, excuse: Excuse) -> CaseResult:
    return result.model_copy(update={"verdict": Verdict.NOT_MEASURED, "waived": excuse.reason})


def _skipped(case: Case, excuse: Excuse | None, endings: Endings, lack: str) -> CaseResult | None:
    """The result of a case that is not run: excluded, not to be called, or behind others that ended all."""
    if excuse is not None and not excuse.kinds:
        return _waived(failed(case, Verdict.NOT_MEASURED, ""), excuse)
    if lack:
        return failed(case, Verdict.FAIL, lack)
    end = endings.of_all()
    return None if end is None else failed(case, end.verdict, end.message, end.ending)


def _open(case: Case, open_session: Callable[[], Session]) -> Session | CaseResult:
    """A session, or what its absence means for ``case``."""
    try:
        return open_session()
    except LoadError as error:
        return failed(case, Verdict.FAIL, str(error))
    except DeviceError as error:
        return failed(case, Verdict.INFRA_ERROR, str(error))


def _judge_case(
    calling: _Calling,
    changed: Diagnosis,
    case: Case,
    content_of: Callable[[int], Case],
    schedules: Sequence[Schedule],
    previous: Mapping[str, NDArray[np.generic]] | None,
    session: Session,
) -> _Outcome:
    """Call one case under each schedule, with the content of its number; stops at the first wrong one."""
    answers: list[Answer] = []

    def run(content: Case, schedule: Schedule) -> CaseResult:
        before = answers[-1].arrays if answers else previous
        result, answer = calling(content, session, schedule, before)
        answers.append(answer)
        return result

    def right(content: Case, schedule: Schedule) -> bool:
        return answers[-1].usable and run(content, schedule).verdict is Verdict.PASS

    sizes = dict(case.sizes)
    result = CaseResult(name=case.name, group=case.group, verdict=Verdict.PASS, sizes=sizes)
    for number, schedule in _orders(case, schedules, answers):
        content = content_of(number)
        result = run(content, schedule).model_copy(update={"sizes": sizes})
        if result.verdict is Verdict.PASS:
            continue
        undefined = _undefined(answers[-1])
        wrong: Case | None = None
        note: Diagnosis | None = None
        blamed = schedule.value if number > 0 else None
        if case.queued and right(replace(content, queued={}), schedule):
            note = _QUEUED
        elif case.staged and right(replace(content, staged=False), schedule):
            note = _OTHER_STREAM
        elif number > 0 and right(content, schedules[0]):
            note = _ORDERS.get(schedule, _ORDER)
        elif answers[-1].usable:
            blamed = None
            if number == 0 or right(case, schedules[0]):
                wrong = content
            else:
                note = changed
        result = _noted(result, note, undefined)
        return _Outcome(result.model_copy(update={"schedule": blamed}), answers, number > 0, wrong)
    return _Outcome(result, answers, right_once=True)


def _content(problem: Problem, case: Case, number: int) -> Case:
    """The case with the content that it has in the order of that number.

    Each order meets other content, or what a call left behind would look right in the next one. In about half
    of the cases it is fresh; in the others some numbers of the first one have changed places, which a kernel
    that remembers results does not see if it takes a sample, or a sum, for all of its inputs.
    """
    similar = problem.similar(case, number) if number and case.seed % 2 else None
    return similar or replace(case, seed=case.seed + number)


def _orders(
    case: Case, schedules: Sequence[Schedule], before: Sequence[Answer]
) -> Iterator[tuple[int, Schedule]]:
    """The schedules of a case with their numbers, but for late streams where one stream had all the work."""
    for number, schedule in enumerate(schedules[: case.orders]):
        if schedule is not Schedule.LATE_STREAMS or not any(answer.on_one_stream for answer in before):
            yield number, schedule


def _right_alone(
    calling: _Calling, content: Case, open_session: Callable[[], Session], schedule: Schedule
) -> bool:
    """Whether ``content`` is right in a runner that was called for nothing else."""
    session = _open(content, open_session)
    if isinstance(session, CaseResult):
        return False
    try:
        return calling(content, session, schedule, None)[0].verdict is Verdict.PASS
    finally:
        session.close()


def _overflows(call: Call, case: Case, open_session: Callable[[], Session]) -> Sequence[Finding]:
    """Where an index does not fit into 32 bits, as the ``call`` of a case in a fresh runner may show."""
    session = _open(case, open_session)
    if isinstance(session, CaseResult):
        return ()
    try:
        return [finding for finding in session.run(call).findings if finding.kind == OVERFLOW]
    finally:
        session.close()


def beside(results: Sequence[CaseResult], checked: Sequence[CaseResult], name: str) -> list[CaseResult]:
    """The ``results`` of the device ``name``, with those of the simulator where only its numbers are wrong.

    The simulator takes orders that a GPU takes rarely: a kernel that is wrong in one of them depends on luck.
    A case that it could not finish says nothing of the GPU, and one that it cannot run is not checked.
    """
    both = []
    for result, other in zip(results, checked, strict=True):
        if result.verdict is Verdict.PASS and other.verdict is Verdict.FAIL and other.outputs:
            both.append(_noted(other, Diagnosis("luck", f"right on {name} this time, wrong on the sim")))
        else:
            both.append(taken_over(result, other).model_copy(update={"gaps": other.gaps}))
    return both


def overrun_beside(checked: Judged, judged: Judged) -> Judged:
    """What the simulator saw, and what guard zones show on a GPU if it saw no access outside of an array."""
    if any(finding.kind == OVERRUN for finding in (*checked.findings, *checked.waived)):
        return checked
    return replace(
        checked,
        findings=(*checked.findings, *judged.findings),
        waived={**checked.waived, **judged.waived},
    )


def _summary(results: Sequence[CaseResult]) -> str:
    """One line for a problem that was not begun, instead of a wall of numbers."""
    if not results:
        return ""
    if all(result.diagnoses == [NOTHING_WRITTEN] for result in results):
        return str(NOTHING_WRITTEN)
    if all(result.ending is Ending.UNBEGUN for result in results):
        return "; ".join(dict.fromkeys(result.message for result in results))
    return ""
