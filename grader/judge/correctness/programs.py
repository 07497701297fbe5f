"""The exchange of program problems: a program is run, and what it wrote is compared with what is expected.

Pure functions of the content of files, but for the exchange itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from grader.devices.device import Call
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
    from grader.problems.program import Checker, Expected, Run

ENTRY_POINT = "main"
_LONGEST = 60  # characters of a line that a diagnosis shows
_SPARE_BYTES = 1 << 20  # that an output may have beside eight times what is expected, or it is not read
_ELEMENT_BYTES = 32  # of the longest text of a number
_NO_KERNEL = "the output is right, but no kernel was launched: the program has to compute on the GPU"


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
        wanted = f"; {run.exit_code} is expected" if run.exit_code else ""
        last = _last_line(answer.printed)
        words = f': it said "{last}"' if last else ""
        message = f"the program ended with exit code {answer.exit_code}{wanted}{words}"
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
    told = "" if wrong or problem.checker is None else _told(problem.checker, case, run, answer.files)
    if told:
        return failed(case, Verdict.FAIL, told)
    idle = not wrong and problem.kernels and answer.kernels == 0
    return CaseResult(
        name=case.name,
        group=case.group,
        verdict=Verdict.FAIL if wrong or idle else Verdict.PASS,
        message=_NO_KERNEL if idle else "",
        outputs=[one.result for one in compared],
        diagnoses=[
            replace(one.diagnosis, outputs=(one.result.name,) if len(compared) > 1 else ())
            for one in compared
            if one.diagnosis is not None
        ],
    )


def _told(checker: Checker, case: Case, run: Run, files: Mapping[str, bytes]) -> str:
    """What the assignment's checker says."""
    try:
        return checker(case, run, files)
    except ValueError as error:
        return f"the output cannot be read: {error}"


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
    wanted = [line.rstrip() for line in expected.text.splitlines()]
    got = [line for _, line in lines]
    while wanted and not wanted[-1]:
        wanted.pop()
    while got and not got[-1]:
        got.pop()
    bad = [place for place, (one, other) in enumerate(zip(wanted, got, strict=False)) if one != other]
    count = len(bad) + abs(len(wanted) - len(got))
    result = _result(name, ComparisonRule(method="text"), bad=count, total=max(len(wanted), len(got)))
    return Compared(result, _first_difference(name, bad, wanted, lines[: len(got)]))


def _by_words(
    name: str, expected: Words, lines: Sequence[tuple[int, str]], ignored: Sequence[str]
) -> Compared:
    wanted = [word for _, line in _lines(expected.text.encode(), ignored) for word in line.split()]
    got = [(number, word) for number, line in lines for word in line.split()]
    bad, furthest = [], (0.0, 0.0, -1.0)
    elements = []
    for place, (right, (_, word)) in enumerate(zip(wanted, got, strict=False)):
        number, mine = number_of(right), number_of(word)
        if number is None or mine is None:
            if right != word:
                bad.append(place)
            continue
        allowed = expected.atol + expected.rtol * abs(number)
        error = abs(mine - number)
        close = error <= allowed or mine == number or (mine != mine and number != number)  # noqa: PLR0124
        if not close:
            bad.append(place)
            elements.append(BadElement(index=[place], expected=value(number), got=value(mine)))
        if error - allowed > furthest[2] and np.isfinite(error):
            furthest = error, allowed, error - allowed
    count = len(bad) + abs(len(wanted) - len(got))
    rule = ComparisonRule(method="words", rtol=expected.rtol, atol=expected.atol)
    result = _result(
        name,
        rule,
        bad=count,
        total=max(len(wanted), len(got)),
        max_error=furthest[0],
        allowed=furthest[1],
        first_bad=elements[:SHOWN],
    )
    diagnosis = _first_difference(name, bad, wanted, got, counted="word")
    return Compared(result, diagnosis)


def _first_difference(
    name: str, bad: Sequence[int], wanted: Sequence[str], got: Sequence[tuple[int, str]], counted: str = ""
) -> Diagnosis | None:
    """The first place of ``bad``, or the end of the shorter sequence; None where nothing differs.

    ``got`` has the line of each piece beside it. Pieces that are no whole lines are ``counted``.
    """
    if not bad and len(wanted) == len(got):
        return None
    place = bad[0] if bad else min(len(wanted), len(got))
    line, text = got[place] if place < len(got) else (0, None)
    right = wanted[place] if place < len(wanted) else None
    return _differs(name, line, right, text, f", {counted} {place + 1:,}" if counted else "")


def _differs(name: str, line: int, wanted: str | None, got: str | None, place: str = "") -> Diagnosis:
    """Where a text first differs from what is expected; None stands for its end."""
    if got is None:
        return Diagnosis("text_ends", f'the end of {name}, where "{_cut(wanted or "")}" should follow{place}')
    if wanted is None:
        return Diagnosis(
            "text_goes_on", f'line {line} of {name}{place}: "{_cut(got)}" behind the expected end'
        )
    return Diagnosis(
        "text_differs", f'line {line} of {name}{place}: "{_cut(got)}" instead of "{_cut(wanted)}"'
    )


def _by_elements(name: str, expected: Numbers, content: bytes, ignored: Sequence[str]) -> Compared:
    format_ = FORMATS[expected.format]
    wanted = expected.values
    if expected.format == "numbers" and ignored:
        content = "\n".join(line for _, line in _lines(content, ignored)).encode()
    rule = ComparisonRule(method="bound" if expected.allowed is not None else "tolerance")
    if expected.allowed is None:
        rule = ComparisonRule(method="tolerance", rtol=expected.rtol, atol=expected.atol)
    try:
        got = format_.read(content)
    except FormatError as error:
        result = _result(name, rule, bad=wanted.size, total=wanted.size)
        return Compared(result, Diagnosis("format", f"in {name} there is {error}"))
    if got.shape != wanted.shape if format_.shaped else got.size != wanted.size:
        shapes = (" x ".join(map(str, one.shape)) for one in (got, wanted)) if format_.shaped else ()
        held, asked = shapes or (f"{one.size:,} numbers" for one in (got, wanted))
        result = _result(name, rule, bad=wanted.size, total=wanted.size)
        return Compared(result, Diagnosis("shape", f"there are {held} in {name}, and not {asked}"))
    whole = wanted.dtype.kind in "iub" and expected.allowed is None and not (expected.rtol or expected.atol)
    right: NDArray[np.float64] | NDArray[np.int64]
    right = wanted.astype(np.int64) if whole else wanted.astype(np.float64)
    allowed = expected.allowed
    if allowed is None:
        allowed = expected.atol + expected.rtol * np.abs(right.astype(np.float64))
    compared = compare(name, Expectation((Candidate(right, allowed),)), got.reshape(wanted.shape))
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
            BadElement(index=list(one.index), expected=value(one.expected), got=value(one.got))
            for one in compared.first_bad
        ],
    )
    if compared.right:
        return Compared(result)
    first = compared.first_bad[0]
    place = ", ".join(map(str, first.index))
    cause = f"element [{place}] of {name} is {first.got:.9g} instead of {first.expected:.9g}"
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
        rule=rule,
    )
