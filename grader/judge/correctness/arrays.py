"""The exchange of kernel problems and model problems: arrays go in, and those that come out are compared."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from grader.judge.correctness.calls import by_field, case_call
from grader.judge.correctness.checkers import CheckerError, described, refused, unwritten
from grader.judge.correctness.comparison import changed_elements, compare
from grader.judge.correctness.diagnosis import NOTHING_LAUNCHED, NOTHING_WRITTEN, OF_PREVIOUS_CALL, diagnose
from grader.judge.correctness.exchange import ended, failed
from grader.judge.correctness.last_stores import watched_again
from grader.judge.correctness.launches import Launches
from grader.judge.correctness.places import right_at_places
from grader.problems.problem import ModelProblem, Role
from grader.problems.written import is_written
from grader.records.diagnosis import as_question
from grader.records.record import BadElement, CaseResult, OutputResult, value
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from grader.devices.device import Answer, Call, Memory, Schedule, Session
    from grader.judge.correctness.comparison import Comparison
    from grader.problems.problem import Case, Expectation, Inputs, Problem


_LATER_CALL = as_question(
    "later_call",
    "right in the first call, wrong in a later one with the same numbers",
    "is something kept between calls (static, a cached pointer, memory that is cleared once), or a variable "
    "read that is never set?",
)


class _Arrays:
    """See ``Exchange``."""

    changed = _LATER_CALL

    def idle(self, problem: Problem, answers: Sequence[Answer]) -> str:  # noqa: ARG002
        """Nothing: the host cannot write to the arrays; see ``Exchange``."""
        return ""

    def call(self, problem: Problem, case: Case, seconds: float, memory: Memory, schedule: Schedule) -> Call:
        """The call of a launcher, or of the function of a harness; see ``Exchange``."""
        return case_call(problem, case, problem.inputs(case), seconds, memory, schedule)

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
        """The outputs against what the oracle expects, with a diagnosis; see ``Exchange``."""
        return _called(problem, content, session, schedule, memory, seconds, previous)


ARRAYS = _Arrays()


def _called(
    problem: Problem,
    content: Case,
    session: Session,
    schedule: Schedule,
    memory: Memory,
    seconds: float,
    previous: Mapping[str, NDArray[np.generic]] | None,
) -> tuple[CaseResult, Answer]:
    """The result of one call, and its answer.

    A call that goes wrong for no known reason is made once more. Where that one ends the session, the answer
    says so.
    """
    inputs = problem.inputs(content)
    expected = cache(partial(problem.oracle, content, inputs))

    def called() -> tuple[Answer, Launches | None]:
        launches = None
        if isinstance(problem, ModelProblem):
            launches = Launches(problem, content, inputs.scalars, expected())
        call = case_call(problem, content, inputs, seconds, memory, schedule, launches)
        answer = session.run(call)
        return replace(answer, arrays=by_field(problem, content, answer.arrays)), launches

    answer, launches = called()
    second: list[Answer] = []

    def again() -> Mapping[str, NDArray[np.generic]]:
        second.append(called()[0])
        return second[0].arrays if second[0].usable else {}

    if launches is not None and answer.served:
        answer = replace(answer, faults=(*answer.faults, *launches.faults))
    result = _result(problem, content, inputs, expected, answer, previous, again)
    if launches is not None and answer.served and result.verdict is Verdict.PASS and launches.elsewhere:
        update = {"verdict": Verdict.FAIL, "message": "; ".join(launches.elsewhere)}
        result = result.model_copy(update=update)
    known = {diagnosis.kind for diagnosis in result.diagnoses} & {NOTHING_WRITTEN.kind, OF_PREVIOUS_CALL}
    if answer.kernels == 0 and result.diagnoses and not known:
        result = result.model_copy(update={"diagnoses": [NOTHING_LAUNCHED]})
    if second and not second[0].goes_on:
        answer = replace(answer, status=second[0].status)
    if answer.usable and answer.watchable and any(output.bad for output in result.outputs):
        call = case_call(problem, content, inputs, seconds, memory, schedule)
        result, ending = watched_again(problem, content, result, call, answer, session)
        answer = replace(answer, status=ending)
    return result, answer


def _result(
    problem: Problem,
    case: Case,
    inputs: Inputs,
    expected: Callable[[], Mapping[str, Expectation]],
    answer: Answer,
    previous: Mapping[str, NDArray[np.generic]] | None,
    again: Callable[[], Mapping[str, NDArray[np.generic]]],
) -> CaseResult:
    """What one answer says of a case with the ``expected`` outputs; ``again`` makes the call once more."""
    if not answer.usable:
        return ended(case, answer)
    compared = right_at_places(problem, case, inputs, answer.arrays) if case.at_places else None
    if compared is None:
        right = {name: expectation for name, expectation in expected().items() if not is_written(name)}
        compared = {name: compare(name, right[name], answer.arrays[name]) for name in right}
    faults = [
        *answer.faults,
        *(
            f"{name} must not change, but {changed:,} of its elements did"
            for name, before in inputs.arrays.items()
            if name not in compared
            and name not in problem.free
            and (problem.checker is None or problem.roles.get(name) is not Role.INOUT)
            and before is not None
            and name in answer.arrays  # else not passed at all
            if (changed := changed_elements(before, answer.arrays[name]))
        ),
    ]
    wrong = bool(faults) or not all(comparison.right for comparison in compared.values())
    result = CaseResult(
        name=case.name,
        group=case.group,
        verdict=Verdict.FAIL if wrong else Verdict.PASS,
        message="; ".join(faults),
        outputs=[_output(comparison) for comparison in compared.values()],
        diagnoses=list(
            diagnose(
                problem,
                case,
                inputs,
                compared,
                answer.arrays,
                previous,
                raced=any(finding.tool == "racecheck" for finding in answer.findings),
                again=again,
            )
        ),
    )
    return result if wrong or problem.checker is None else _checked(problem, case, inputs, answer, result)


def _checked(problem: Problem, case: Case, inputs: Inputs, answer: Answer, right: CaseResult) -> CaseResult:
    """The result of a case after the checker, where all that the oracle expects is ``right``."""
    compared = [output.name for output in right.outputs]
    try:
        wrong, outputs = refused(problem, case, inputs, answer.arrays, compared)
    except CheckerError as error:
        return failed(case, Verdict.INFRA_ERROR, str(error))
    figures = {output.name: output for output in (*right.outputs, *outputs)}
    result = right.model_copy(update={"outputs": list(figures.values())})
    if wrong is None:
        return result
    arrays = {name: answer.arrays[name] for name in figures}
    nothing = not right.outputs and unwritten(arrays)
    diagnosis = NOTHING_WRITTEN if nothing else described(wrong, arrays, len(figures))
    return result.model_copy(update={"verdict": Verdict.FAIL, "diagnoses": [diagnosis]})


def _output(comparison: Comparison) -> OutputResult:
    return OutputResult(
        name=comparison.name,
        max_error=value(comparison.max_error),
        allowed=value(comparison.allowed),
        bad=comparison.bad,
        total=comparison.total,
        nan=comparison.nan,
        infinite=comparison.infinite,
        first_bad=[
            BadElement(index=list(element.index), expected=value(element.expected), got=value(element.actual))
            for element in comparison.first_bad
        ],
        picture=comparison.picture,
    )
