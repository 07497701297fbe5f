"""The exchange of program problems: a program is run, and what it wrote is compared with what is expected.

Pure functions of the content of files, but for the exchange itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from grader.devices.device import Call
from grader.judge.correctness.checkers import CheckerError, complaint
from grader.judge.correctness.comparison import SHOWN, compare
from grader.judge.correctness.exchange import ended, failed
from grader.problems.formats import FORMATS, FormatError, number_of
from grader.problems.problem import Candidate, Expectation
from grader.problems.program import STDOUT, Numbers, ProgramProblem, Text, Words
from grader.records.diagnosis import Diagnosis, as_question
from grader.records.record import BadElement, CaseResult, ComparisonRule, OutputResult, value
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from grader.devices.device import Answer, Memory, Schedule, Session
    from grader.problems.problem import Case, Problem
    from grader.problems.program import Expected, Run

ENTRY_POINT = "main"
_LONGEST = 60  # characters of a line that a diagnosis shows
_SPARE_BYTES = 1 << 20  # that an output may have beside eight times what is expected, or it is not read
_ELEMENT_BYTES = 32  # of the longest text of a number
_NO_KERNEL = "the output is right, but no kernel was launched: the program has to compute on the GPU"
_NO_EFFECT = (
    "the output is right, but no kernel reads or writes memory, or prints: the program has to compute on the "
    "GPU"
)


@dataclass(frozen=True)
class Compared:
    """An output against what is expected: its figures, and why it is wrong where it is."""

    result: OutputResult
    diagnosis: Diagnosis | None = None


_CHANGED = as_question(
    "changing_program",
    "two runs with the same input give different output",
    "does the host read what a kernel has yet to write, with no synchronisation between the two, or do "
    "threads race?",
)


class _Programs:
    """See ``Exchange``."""

    changed = _CHANGED

    def idle(self, problem: Problem, answers: Sequence[Answer]) -> str:
        """Why no kernel of a program can have determined what it wrote; see ``Exchange``."""
        assert isinstance(problem, ProgramProblem)
        seen = [answer for answer in answers if answer.counts]  # the second order counts nothing
        acts = any(
            answer.kernels_printed or any(count.global_requests or count.atomics for count in answer.counts)
            for answer in seen
        )
        return _NO_EFFECT if seen and problem.kernels and not acts else ""

    def call(self, problem: Problem, case: Case, seconds: float, memory: Memory, schedule: Schedule) -> Call:
        """A run of the program; see ``Exchange``."""
        assert isinstance(problem, ProgramProblem)
        return Call(ENTRY_POINT, (), seconds, memory, schedule, run=problem.run(case))

    def called(
        self,
        problem: Problem,
        content: Case,
        session: Session,
        schedule: Schedule,
        previous: Mapping[str, NDArray[np.generic]] | None,  # noqa: ARG002 - each run is a process of its own
        *,
        memory: Memory,
        seconds: float,
    ) -> tuple[CaseResult, Answer]:
        """Everything that the program wrote against what is expected; see ``Exchange``."""
        assert isinstance(problem, ProgramProblem)
        call = self.call(problem, content, seconds, memory, schedule)
        assert call.run is not None
        answer = session.run(call)
        return judged(problem, content, call.run, answer), answer


PROGRAMS = _Programs()


def judged(problem: ProgramProblem, case: Case, run: Run, answer: Answer) -> CaseResult:
    """The result of a case of ``problem`` that was ``run`` with this answer."""
    if not answer.usable:
        return ended(case, answer)
    if answer.exit_code != run.exit_code:
        expectation = f"; {run.exit_code} is expected" if run.exit_code else ""
        last = _last_line(answer.printed)
        words = f': it said "{last}"' if last else ""
        message = f"the program ended with exit code {answer.exit_code}{expectation}{words}"
        return failed(case, Verdict.FAIL, message)
    absent = [name for name in run.expected if not answer.files.get(name)]
    absent += [name for name in run.outputs if name not in answer.files]
    if absent and any(name in run.outputs or _is_something(run.expected[name]) for name in absent):
        texts = ["printed nothing" if name == STDOUT else f"did not write {name}" for name in absent]
        return failed(
            case,
            Verdict.FAIL,
            f"the program {' and '.join(texts)}, and ended with exit code {answer.exit_code}",
        )
    compared = [
        compared_output(name, expected, answer.files.get(name, b""), problem.ignored)
        for name, expected in run.expected.items()
    ]
    wrong = any(one.diagnosis is not None for one in compared)
    if problem.checker is not None and not wrong:
        try:
            refusal = complaint(problem.checker, case, run, answer.files, (ValueError,))
        except CheckerError as error:
            return failed(case, Verdict.INFRA_ERROR, str(error))
        if refusal is not None:
            return failed(case, Verdict.FAIL, refusal.message)
    idle = not wrong and problem.kernels and answer.kernels == 0
    return CaseResult(
        name=case.name,
        group=case.group,
        verdict=Verdict.FAIL if wrong or idle else Verdict.PASS,
        message=_NO_KERNEL if idle else "",
        outputs=[output.result for output in compared],
        diagnoses=[
            replace(output.diagnosis, outputs=(output.result.name,) if len(compared) > 1 else ())
            for output in compared
            if output.diagnosis is not None
        ],
    )


def judged_files(problem: ProgramProblem, run: Run, answer: Answer) -> Mapping[str, bytes]:
    """The files of ``answer`` that ``judged`` looks at: all of them where the assignment has a checker."""
    if problem.checker is not None:
        return answer.files
    return {name: text for name, text in answer.files.items() if name in run.expected or name in run.outputs}


def compared_output(name: str, expected: Expected, content: bytes, ignored: Sequence[str] = ()) -> Compared:
    """One output against what is expected of it.

    Args:
        name: of the output.
        expected: what is right.
        content: what the program wrote.
        ignored: regular expressions of lines of text that are not compared.
    """
    size = expected.values.size * _ELEMENT_BYTES if isinstance(expected, Numbers) else len(expected.text)
    if len(content) > _SPARE_BYTES + 8 * size:
        cause = f"there are {len(content):,} bytes in {name}, far more than is expected"
        return Compared(
            _result(name, ComparisonRule(method="text"), bad=1, total=1), Diagnosis("size", cause)
        )
    match expected:
        case Text():
            return _exactly(name, expected, _lines(content, ignored))
        case Words():
            return _by_words(name, expected, _lines(content, ignored), ignored)
        case Numbers():
            return _by_elements(name, expected, content, ignored)


def _is_something(expected: Expected) -> bool:
    """Whether no empty output can be right."""
    return expected.values.size > 0 if isinstance(expected, Numbers) else bool(expected.text.strip())


def _last_line(printed: str) -> str:
    lines = [line for line in printed.splitlines() if line.strip()]
    return _cut(lines[-1].strip()) if lines else ""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _lines(content: bytes, ignored: Iterable[str]) -> list[tuple[int, str]]:
    """The lines of a text that count, with their numbers, without white space at their ends."""
    patterns = [re.compile(pattern) for pattern in ignored]
    return [
        (number, line.rstrip())
        for number, line in enumerate(content.decode(errors="replace").splitlines(), 1)
        if not any(pattern.search(line) for pattern in patterns)
    ]


def _exactly(name: str, expected: Text, lines: Sequence[tuple[int, str]]) -> Compared:
    expected_lines = [line.rstrip() for line in expected.text.splitlines()]
    actual = [line for _, line in lines]
    while expected_lines and not expected_lines[-1]:
        expected_lines.pop()
    while actual and not actual[-1]:
        actual.pop()
    bad = [
        index
        for index, (line, other) in enumerate(zip(expected_lines, actual, strict=False))
        if line != other
    ]
    count = len(bad) + abs(len(expected_lines) - len(actual))
    result = _result(
        name, ComparisonRule(method="text"), bad=count, total=max(len(expected_lines), len(actual))
    )
    return Compared(result, _first_difference(name, bad, expected_lines, lines[: len(actual)]))


def _by_words(
    name: str, expected: Words, lines: Sequence[tuple[int, str]], ignored: Sequence[str]
) -> Compared:
    expected_words = [word for _, line in _lines(expected.text.encode(), ignored) for word in line.split()]
    actual = [(number, word) for number, line in lines for word in line.split()]
    bad, furthest = [], (0.0, 0.0, -1.0)
    elements = []
    for index, (right, (_, word)) in enumerate(zip(expected_words, actual, strict=False)):
        number, actual_number = number_of(right), number_of(word)
        if number is None or actual_number is None:
            if right != word:
                bad.append(index)
            continue
        allowed = expected.atol + expected.rtol * abs(number)
        error = abs(actual_number - number)
        both_nan = np.isnan(actual_number) and np.isnan(number)
        close = error <= allowed or actual_number == number or both_nan
        if not close:
            bad.append(index)
            elements.append(BadElement(index=[index], expected=value(number), got=value(actual_number)))
        if error - allowed > furthest[2] and np.isfinite(error):
            furthest = error, allowed, error - allowed
    count = len(bad) + abs(len(expected_words) - len(actual))
    rule = ComparisonRule(method="words", rtol=expected.rtol, atol=expected.atol)
    result = _result(
        name,
        rule,
        bad=count,
        total=max(len(expected_words), len(actual)),
        max_error=furthest[0],
        allowed=furthest[1],
        first_bad=elements[:SHOWN],
    )
    diagnosis = _first_difference(name, bad, expected_words, actual, counted="word")
    return Compared(result, diagnosis)


def _first_difference(
    name: str,
    bad: Sequence[int],
    expected: Sequence[str],
    actual: Sequence[tuple[int, str]],
    counted: str = "",
) -> Diagnosis | None:
    """The first place of ``bad``, or the end of the shorter sequence; None where nothing differs.

    ``actual`` has the line of each piece beside it. Pieces that are no whole lines are ``counted``.
    """
    if not bad and len(expected) == len(actual):
        return None
    index = bad[0] if bad else min(len(expected), len(actual))
    line, text = actual[index] if index < len(actual) else (0, None)
    right = expected[index] if index < len(expected) else None
    return _differs(name, line, right, text, f", {counted} {index + 1:,}" if counted else "")


def _differs(name: str, line: int, expected: str | None, actual: str | None, position: str = "") -> Diagnosis:
    """Where a text first differs from what is expected; None stands for its end."""
    if actual is None:
        return Diagnosis(
            "text_ends", f'the end of {name}, where "{_cut(expected or "")}" should follow{position}'
        )
    if expected is None:
        return Diagnosis(
            "text_goes_on", f'line {line} of {name}{position}: "{_cut(actual)}" behind the expected end'
        )
    return Diagnosis(
        "text_differs", f'line {line} of {name}{position}: "{_cut(actual)}" instead of "{_cut(expected)}"'
    )


def _by_elements(name: str, expected: Numbers, content: bytes, ignored: Sequence[str]) -> Compared:
    format_ = FORMATS[expected.format]
    values = expected.values
    if expected.format == "numbers" and ignored:
        content = "\n".join(line for _, line in _lines(content, ignored)).encode()
    rule = ComparisonRule(method="bound" if expected.allowed is not None else "tolerance")
    if expected.allowed is None:
        rule = ComparisonRule(method="tolerance", rtol=expected.rtol, atol=expected.atol)
    try:
        actual = format_.read(content)
    except FormatError as error:
        result = _result(name, rule, bad=values.size, total=values.size)
        return Compared(result, Diagnosis("format", f"in {name} there is {error}"))
    if actual.shape != values.shape if format_.shaped else actual.size != values.size:
        shapes = (" x ".join(map(str, array.shape)) for array in (actual, values)) if format_.shaped else ()
        held, required = shapes or (f"{array.size:,} numbers" for array in (actual, values))
        result = _result(name, rule, bad=values.size, total=values.size)
        return Compared(result, Diagnosis("shape", f"there are {held} in {name}, and not {required}"))
    exact = values.dtype.kind in "iub" and expected.allowed is None and not (expected.rtol or expected.atol)
    right: NDArray[np.float64] | NDArray[np.int64]
    right = values.astype(np.int64) if exact else values.astype(np.float64)
    allowed = expected.allowed
    if allowed is None:
        allowed = expected.atol + expected.rtol * np.abs(right.astype(np.float64))
    compared = compare(name, Expectation((Candidate(right, allowed),)), actual.reshape(values.shape))
    result = _result(
        name,
        rule,
        bad=compared.bad,
        total=compared.total,
        max_error=compared.max_error,
        allowed=compared.allowed,
        nan=compared.nan,
        infinite=compared.infinite,
        first_bad=[
            BadElement(index=list(element.index), expected=value(element.expected), got=value(element.actual))
            for element in compared.first_bad
        ],
        picture=compared.picture,
    )
    if compared.right:
        return Compared(result)
    first = compared.first_bad[0]
    index = ", ".join(map(str, first.index))
    cause = f"element [{index}] of {name} is {first.actual:.9g} instead of {first.expected:.9g}"
    return Compared(result, Diagnosis("elements_differ", cause))


def _result(
    name: str,
    rule: ComparisonRule,
    *,
    bad: int,
    total: int,
    max_error: float = 0.0,
    allowed: float = 0.0,
    nan: int = 0,
    infinite: int = 0,
    first_bad: Sequence[BadElement] = (),
    picture: Sequence[str] = (),
) -> OutputResult:
    return OutputResult(
        name=name,
        max_error=value(max_error),
        allowed=value(allowed),
        bad=bad,
        total=total,
        nan=nan,
        infinite=infinite,
        first_bad=list(first_bad),
        picture=list(picture),
        rule=rule,
    )
