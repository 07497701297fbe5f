"""What to mend first in a problem, in at most three lines: what is wrong, where, and what to do.

It is derived from the result of the problem alone, so old records have it, too. What the checkers saw comes
before wrong numbers, the most fundamental first; each fault is said once.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from math import inf
from textwrap import shorten
from typing import TYPE_CHECKING

from grader.records.demands import MEASURES, bound, figure
from grader.records.diagnosis import NO_CAUSE, Certainty
from grader.records.findings import KINDS, STREAMS, UNWRITTEN, in_triton, parting
from grader.records.mangled import own_names_in
from grader.records.sentences import advice, fault_key, names
from grader.records.stores import By
from grader.records.verdict import Ending, Verdict
from grader.reports.advice import BEFORE, LATER_CPP, RAISED, REACH
from grader.reports.causes import COMPILE_ERROR, hints, wrong
from grader.reports.escaping import line, readable
from grader.reports.gaps import gaps, lack, reached, remedy
from grader.reports.groups import rest_behind, sizes_of, told_apart

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from grader.records.diagnosis import Diagnosis
    from grader.records.record import (
        BadElement,
        BuildResult,
        CaseResult,
        FindingRecord,
        OutputResult,
        PlaceRecord,
        ProblemResult,
        SourceLines,
        StoreRecord,
        Value,
    )

_OR_NOTHING = ", without which the problem earns nothing"
TOO_SLOW = "Right, but too slow"
_BEGIN = "Write the kernel, launch it in the launcher of this problem, and let it write every output."
_THIS_LINE = "Correct this line first: other errors may follow from it."
_AS_BEFORE = "the output still holds what was there before"
MOST_CHARACTERS = 80  # of a source line
_NUMBERS = "numbers"
_BARRIER = re.compile(r"^(?!\s*//).*(?:__syncthreads\(|tl\.debug_barrier\()")
_TELLS = re.compile(r"\berror\b|undefined reference|multiple definition|No rule to make target")
_STANDARD = re.compile(r"-std=c\+\+(?P<year>\d+)")
NOTHING_WRITTEN = "nothing_written"  # a kind of diagnosis
_MOST_AT_ONCE = 16  # elements of a thread; a block has more threads
_RARE = 10  # fewer than one in so many
_RARE_QUESTION = 6  # at most one in so many


@dataclass(frozen=True)
class Access:
    """One of the two accesses of a race."""

    thread: str
    does: str  # reads, writes or updates
    file: str
    line: int
    text: str  # the line; empty in old records


@dataclass(frozen=True)
class Fix:
    """One thing to mend.

    Attributes:
        fault: what is wrong, without a full stop.
        do: about it, a sentence; empty where ``fault`` says all.
        file: where it is, if a line is known.
        line: likewise, else 0.
        text: the source line.
        source: the lines around it.
        kind: of the finding, whose place in ``docs/findings.md`` has that name; empty for anything else.
        detail: what was seen, with the numbers.
        example: a wrong element, instead of a line.
        more: other places of the same fault.
        accesses: of a race, the earlier one first.
        calls: where the function is called that ``line`` is in, the innermost first.
        gap: of a race, the lines between which a barrier belongs; none where a barrier mends nothing.
        ended: whether a limit or a crash is all that is known, as a faulty machine would cause it.
        undecided: whether it is no fault, but what the simulator cannot run.
        stored: whether the line is what stored the wrong element: what made it so may come before.
    """

    fault: str
    do: str = ""
    file: str = ""
    line: int = 0
    text: str = ""
    source: SourceLines | None = None
    kind: str = ""
    detail: str = ""
    example: str = ""
    more: tuple[str, ...] = ()
    accesses: tuple[Access, ...] = ()
    calls: tuple[str, ...] = ()
    gap: tuple[int, int] | None = None
    ended: bool = False
    undecided: bool = False
    stored: bool = False

    @property
    def location(self) -> str:
        """File and line; empty where none is known."""
        return f"{self.file}:{self.line}" if self.line else ""

    @property
    def cause(self) -> str:
        """What is wrong and at which place, in one line."""
        at = ", stored at" if self.stored else " at"
        return f"{self.fault}{at} {self.location}" if self.location else self.fault

    @property
    def where(self) -> str:
        """The place with its line, or the example."""
        if self.accesses:
            earlier, later = self.accesses
            other = f"line {later.line}" if later.file == earlier.file else f"{later.file}:{later.line}"
            return (
                f"{_quoted(f'{earlier.file}:{earlier.line}', earlier.text)} and {_quoted(other, later.text)}"
            )
        called = f"  (called at {', '.join(self.calls)})" if self.calls else ""
        more = f"{called}  (also at {', '.join(self.more)})" if self.more else called
        stored = "Stored at " if self.stored else ""
        return f"{stored}{_quoted(self.location, self.text)}{more}" if self.location else self.example

    @property
    def lines(self) -> tuple[str, ...]:
        """At most three: what is wrong, where, what to do."""
        return tuple(text for text in (self.fault, self.where, self.do) if text)


def fix_first(problem: ProblemResult) -> Fix | None:
    """What is to be mended first; None where nothing is."""
    return next(iter(fixes(problem)), None)


def fixes(problem: ProblemResult) -> tuple[Fix, ...]:
    """All that is to be mended, in this order. A fault of the machine is nobody's to mend here.

    What the simulator cannot run comes first where it leaves the problem undecided, and else last.
    """
    lacking = tuple(_lacking(problem))
    if problem.verdict not in {Verdict.FAIL, Verdict.UNTRUSTED}:
        return lacking or _not_built_here(problem) if problem.verdict is Verdict.NOT_MEASURED else ()
    if problem.build and not problem.build.ok:
        return (_build(problem.build, problem.message),)
    if problem.trust.reasons:
        fault = line(problem.message) or "This is not trusted"
        return (Fix(fault, " ".join(map(line, problem.trust.reasons))),)
    if message := line(problem.message):
        fault, _, do = message.partition(". ")
        return (Fix(fault.removesuffix("."), do),)
    if problem.correctness.summary:
        return (_unbegun(problem.correctness.cases),)
    failing = [case for case in wrong(problem) if case.verdict is Verdict.FAIL]
    order = _order(failing)
    findings = _findings(problem, order)
    late = order[order.index(_NUMBERS) :]
    before = [fix for fix in findings if fix.kind not in late]
    behind = [fix for fix in findings if fix.kind in late]
    return (
        *before,
        *_numbers(failing, problem.correctness.cases, problem.language, beside=findings),
        *behind,
        *lacking,
    ) or (
        *_speed(problem),
        *_demands(problem),
    )


def causes(problem: ProblemResult) -> tuple[str, ...]:
    """The reasons why the problem lost points, one line for each thing to mend."""
    return tuple(dict.fromkeys(fix.cause for fix in fixes(problem)))


def example(problem: ProblemResult) -> str:
    """A wrong element of the case that tells most of what is wrong; empty where no numbers are."""
    case = telling_case(problem)
    return _element(case) if case else ""


def telling_case(problem: ProblemResult) -> CaseResult | None:
    """The case with wrong numbers that tells most of what is wrong; None where there are no such numbers."""
    if problem.correctness.summary:
        return None
    return _telling(case for case in wrong(problem) if _bad(case))


def number(value: Value) -> str:
    """A number that a kernel may have produced, as people read it."""
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def largest_error(output: OutputResult) -> str:
    """The largest error of a wrong element, to be read behind a count; empty where none of them is finite."""
    if (
        isinstance(output.max_error, str)
        or isinstance(output.allowed, str)
        or output.max_error <= output.allowed
    ):
        return ""
    return f"; largest error {number(output.max_error)}, allowed there {number(output.allowed)}"


def _build(build: BuildResult, message: str) -> Fix:
    """The first error of the compiler."""
    errors = list(COMPILE_ERROR.finditer(build.log))
    reason = line(build.remedy)
    if not reason and LATER_CPP.search(build.log) and (standard := _STANDARD.search(build.command)):
        reason = f"This is C++20; C++{standard['year']} is what is compiled. Write it without that."
    if not errors:
        telling = next(filter(_TELLS.search, build.log.splitlines()), build.log)
        words = line(build.remedy) or f"The compiler says: {line(telling)[:200]}"
        stopped = build.ending is Ending.LIMIT
        return Fix(line(message) or "It does not compile", words, ended=stopped)
    first, file = errors[0], line(errors[0]["file"]).rpartition("/")[2]
    following = build.log[first.end() :].lstrip("\n").partition("\n")[0]
    return Fix(
        fault=f"{file} does not compile: {line(first['message'])}",
        do=reason or next((do for words, do in BEFORE if words in first["message"]), _THIS_LINE),
        file=file,
        line=int(first["line"] or first["row"]),
        text=line(following.partition(" | ")[2] or following),
    )


def _not_built_here(problem: ProblemResult) -> tuple[Fix, ...]:
    """What the simulator lacks to build a program: undecided, but its author can write it in another way."""
    build, message = problem.build, line(problem.message)
    if build is None or build.ok or not message:
        return ()
    return (replace(_build(build, message), fault=message, do=line(build.remedy), undecided=True),)


def _lacking(problem: ProblemResult) -> Iterator[Fix]:
    """What the simulator cannot run: it is undecided, but its author can write it in another way."""
    cases = sum(not case.waived for case in problem.correctness.cases)
    for gap in gaps(problem):
        yield Fix(
            fault=readable(lack(gap)),
            do=remedy(gap),
            file=line(gap.file),
            line=gap.line,
            text=_line(gap.source, gap.line),
            source=gap.source,
            detail=f"{line(gap.subject)}, reached in {reached(problem)} of {cases} cases",
            undecided=True,
        )


def _unbegun(cases: list[CaseResult]) -> Fix:
    """A problem that nobody has begun: its functions raise, or its outputs are as they were."""
    bodies = {(case.file, case.line): case for case in cases if case.ending is Ending.UNBEGUN}
    if not bodies:
        case, launcher = next(
            ((case, each) for case in cases for each in case.diagnoses if each.line), (cases[0], NO_CAUSE)
        )
        return Fix(
            "Nothing was written",
            _BEGIN,
            line(launcher.file),
            launcher.line,
            _line(case.source, launcher.line),
            detail=_AS_BEFORE,
        )
    first, *further = bodies.values()
    return Fix(
        fault=line(_behind_its_place(first)),
        do="Write its body, and take out the line that raises NotImplementedError.",
        file=line(first.file),
        line=first.line,
        more=tuple(f"{line(case.file)}:{case.line}" for case in further),
    )


def _behind_its_place(case: CaseResult) -> str:
    """The message of a case without the file and the line that it begins with."""
    return case.message.removeprefix(f"{case.file}:{case.line}: ")


def _order(failing: list[CaseResult]) -> list[str]:
    """The kinds of findings in the order in which they are to be mended, and where wrong numbers come."""
    kinds = list(KINDS)
    kinds.insert(kinds.index(STREAMS), _NUMBERS)
    if all(
        case.schedule for case in failing if case.outputs
    ):  # right in program order: all else follows from the streams
        kinds.remove(STREAMS)
        kinds.insert(kinds.index(UNWRITTEN), STREAMS)
    return kinds


def _findings(problem: ProblemResult, order: list[str]) -> list[Fix]:
    """What the checkers saw, each fault once: what happens at lines that were named follows from that."""
    groups: dict[object, list[FindingRecord]] = {}
    seen = {finding.kind for check in problem.checks for finding in check.findings}
    for check in problem.checks:
        for finding in check.findings:
            kind = KINDS[finding.kind]
            told = kind.costs or kind.explains & seen
            if finding.severity == "error" and not finding.waived and told:
                groups.setdefault(_fault(finding), []).append(finding)
    candidates = sorted(
        map(_finding, groups.values()), key=lambda fix: (order.index(fix.kind), _width(fix.gap))
    )
    named: set[tuple[str, int]] = set()
    faults: list[Fix] = []
    for fix in candidates:
        locations = {(access.file, access.line) for access in fix.accesses} or {(fix.file, fix.line)}
        kind, before = KINDS[fix.kind], {earlier.kind for earlier in faults}
        follows = kind.follows in before or (bool(faults) and kind.consequence)
        follows |= any(fix.kind in KINDS[earlier].explains for earlier in before)
        follows |= any(_mends(earlier, fix) for earlier in faults)
        strayed = kind.race and any(KINDS[earlier].any_value for earlier in before)
        follows |= strayed and bool(locations & named)
        if not follows and not (fix.line and locations <= named):
            faults.append(fix)
        named |= locations
    return faults


def _width(gap: tuple[int, int] | None) -> int:
    return gap[1] - gap[0] if gap else 0


def _mends(earlier: Fix, other: Fix) -> bool:
    """Whether the barrier that an earlier fix asks for orders the accesses of another one, too."""
    if earlier.gap is None or other.gap is None or earlier.file != other.file:
        return False
    return other.gap[0] <= earlier.gap[0] and earlier.gap[1] <= other.gap[1]


def _fault(finding: FindingRecord) -> object:
    """What findings of one fault have in common: both lines of a race, else what is wrong."""
    if KINDS[finding.kind].race and (accesses := _lined(finding)):
        return frozenset((access.file, access.line) for access in accesses)
    return fault_key(finding)


def _finding(same: list[FindingRecord]) -> Fix:
    """One fault from all its findings: that which tells most, and the other places."""
    best = min(
        same,
        key=lambda finding: (
            list(KINDS).index(finding.kind),
            not finding.line,
            not _in_source_order(finding),
        ),
    )
    fault, do = advice(best, _between(best))
    if number := _barrier(best):
        do = (
            f"The barrier at line {number} does not order them: let every thread of the block reach it. "
            "Where they belong to different rounds of a loop, put one at the end of a round."
        )
    accesses = _accesses(best)
    locations = dict.fromkeys(f"{line(finding.file)}:{finding.line}" for finding in same if finding.line)
    return Fix(
        fault=fault,
        do=do,
        file=line(best.file),
        line=best.line,
        text=_line(best.source, best.line),
        source=best.source,
        kind=best.kind,
        detail=readable(best.sentence.observation),
        more=()
        if accesses
        else tuple(location for location in locations if location != f"{line(best.file)}:{best.line}"),
        accesses=accesses,
        calls=() if accesses else _calls(best),
        gap=_gap(best) if accesses and best.reason.startswith("no_sync") else None,
    )


def _calls(finding: FindingRecord) -> tuple[str, ...]:
    """Where the function of the finding's own line is called."""
    first = finding.places[0] if finding.places else None
    if first is None or (first.file, first.line) != (finding.file, finding.line):
        return ()
    return tuple(f"{line(call.file).rpartition('/')[2]}:{call.line}" for call in first.calls)


def _in_source_order(finding: FindingRecord) -> bool:
    """Whether the other access, which came before, is also above it."""
    lines = [access.line for access in _lined(finding)]
    return lines == sorted(lines, reverse=True)


def _accesses(finding: FindingRecord) -> tuple[Access, ...]:
    """Both accesses of a race, the earlier one first; none where the record does not say."""
    if not KINDS[finding.kind].race or not all(access.does for access in finding.places[:2]):
        return ()
    threads = names(finding.places, triton=in_triton(finding))
    accesses = [
        Access(thread, access.does, line(access.file), access.line, _text(access, finding))
        for thread, access in zip(threads, _lined(finding), strict=False)
    ]
    return tuple(reversed(accesses)) if len(accesses) == 2 else ()


def _lined(finding: FindingRecord) -> list[PlaceRecord]:
    """The places of a finding whose line is known."""
    return [access for access in finding.places if access.line]


def _text(access: PlaceRecord, finding: FindingRecord) -> str:
    """The line of a place; from an old record, if it is among those around the finding."""
    return access.text or (_line(finding.source, access.line) if access.file == finding.file else "")


def _line(source: SourceLines | None, number: int) -> str:
    """The line of that number, if it is among those that the record holds."""
    index = number - source.first if source else -1
    return source.lines[index] if source and 0 <= index < len(source.lines) else ""


def _gap(finding: FindingRecord) -> tuple[int, int] | None:
    """The lines that the accesses come from, in the function that both are called from; none if it is one."""
    ways = parting(*finding.places[:2]) if len(finding.places) > 1 else None
    if ways is None:
        return None
    first, last = sorted(way.line for way in ways)
    return first, last


def _barrier(finding: FindingRecord) -> int:
    """The line of a barrier between the lines of a race, in source order; 0 if there is none."""
    lines = sorted({access.line for access in _lined(finding)})
    source, gap = finding.source, _gap(finding)
    elsewhere = any(access.file != finding.file for access in _lined(finding))
    if source is None or gap is None or elsewhere or set(gap) != set(lines) or not _in_source_order(finding):
        return 0
    inner = range(gap[0] + 1, gap[1])
    return next((number for number in inner if _BARRIER.search(_line(source, number))), 0)


def _between(finding: FindingRecord) -> str:
    gap, lines = _gap(finding), {access.line for access in _lined(finding)}
    if gap is None or gap[0] == gap[1]:
        return "between two rounds of this loop" if lines else "between the two"
    calls = "the calls at " if not set(gap) <= lines else ""
    return f"between {calls}line {gap[0]} and line {gap[1]}"


def _where_unwritten(
    diagnosis: Diagnosis, failing: list[CaseResult], cases: list[CaseResult], language: str
) -> Diagnosis:
    """``diagnosis`` of elements that nobody has written, with what the cases that lack some share."""
    if not diagnosis.unwritten or diagnosis.remedy:
        return diagnosis
    lacking = [case for case in failing if _cause(case).unwritten and _bad(case)]
    missing = [(output.bad, output.total) for case in lacking if (output := _bad(case))]
    if len(lacking) == len(failing) and (size := rest_behind(missing)):
        one = "program" if language == "triton" else "block"
        rest = f"the elements behind the last multiple of {size} were never written"
        do = (
            f"A thread that takes {size} elements at once leaves out the rest: store that one by one."
            if size <= _MOST_AT_ONCE
            else f"Round the number of {one}s up, so that the last {one} takes what {size} does not divide."
        )
        return replace(diagnosis, cause=rest, remedy=do)
    nothing = [case for case in lacking if _cause(case).kind == diagnosis.kind]
    others = [case for case in cases if case.verdict in {Verdict.PASS, Verdict.FAIL} and case not in nothing]
    size_of = sizes_of(nothing, others) if diagnosis.kind == NOTHING_WRITTEN and others else ""
    if not size_of:
        return diagnosis
    do = (
        "For these sizes no thread reaches its store: does a loop around it, or around the launch, make a "
        "round too few, or is a number of blocks rounded down?"
    )
    return replace(diagnosis, cause=f"nothing was written in the cases with {size_of}", remedy=do)


def _not_finite(case: CaseResult) -> bool:
    """Whether all that is wrong is NaN or infinite, as it is by many causes."""
    return all(output.bad == output.nan + output.infinite for output in case.outputs)


def _numbers(
    failing: list[CaseResult], cases: list[CaseResult], language: str, beside: list[Fix]
) -> Iterator[Fix]:
    """What is wrong with the cases. Beside findings, which may explain it, only what is sure."""
    if any(KINDS[fix.kind].nothing_ran or KINDS[fix.kind].any_value for fix in beside):
        return
    ran = [case for case in failing if case.ending is not Ending.NOT_RUN]
    broken = next((case for case in ran if case.message), None)
    if broken is not None and not beside:
        if broken.line:
            yield _raised(broken)
            return
        text = readable(broken.message)
        fault = _capital(text) if text.startswith("the ") else text
        yield Fix(fault, example=_element(broken), ended=not broken.outputs)
        return
    case = _telling(case for case in ran if _bad(case))
    if case is None:
        return
    diagnosis = _where_unwritten(_cause(case), ran, cases, language)
    raced = any(KINDS[fix.kind].race for fix in beside)
    if raced and any(_cause(other).kind != diagnosis.kind for other in ran if _bad(other)):
        return  # threads that race make any numbers, which may look like another fault in some case
    named = any(fix.line and (fix.file, fix.line) == (diagnosis.file, diagnosis.line) for fix in beside)
    if beside and (diagnosis.certainty is not Certainty.STATED or _not_finite(case) or named):
        return
    cause = readable(diagnosis.cause)
    if any(cause.startswith(f"{output.name} ") for output in case.outputs):
        fault = cause
    else:
        fault = f"{' and '.join(diagnosis.outputs)}: {cause}" if diagnosis.outputs else _capital(cause)
    do = _capital(readable(diagnosis.remedy)) or (REACH.get(language, "") if diagnosis.unwritten else "")
    if diagnosis.certainty.doubt >= Certainty.PLACED.doubt:
        where = cause if diagnosis.certainty is Certainty.PLACED else readable(diagnosis.place)
        fault = f"The numbers are wrong{f': {where}' if where else ''}"
        do = f"{told_apart(cases)} Compute an element of such a case by hand, step by step."
    seen = _element(case, diagnosis.outputs, readable(diagnosis.evidence))
    fix = Fix(
        fault,
        do,
        line(diagnosis.file),
        diagnosis.line,
        _line(case.source, diagnosis.line),
        detail=seen * (diagnosis.line > 0),
        example=seen,
    )
    yield _stored(fix, _last_store(case, diagnosis.outputs))


def _stored(fix: Fix, store: StoreRecord | None) -> Fix:
    """A fix of wrong numbers with what is known of who stored its element."""
    if store is None:
        return fix
    if store.by is not By.KERNEL or store.place is None:
        seen = f"{fix.example}; nothing stores to it" if store.by is By.NOTHING else fix.example
        return replace(fix, detail=seen) if fix.line else replace(fix, example=seen)
    file = line(store.place.file)
    (thread,) = names([store.place], triton=store.in_triton)
    detail = f"{fix.example}; {thread} of {own_names_in(store.kernel)} stored it"
    if fix.line:
        return replace(fix, detail=f"{detail} (line {store.place.line})")
    if not store.place.text:
        return replace(fix, example=detail)
    return replace(fix, file=file, line=store.place.line, text=store.place.text, detail=detail, stored=True)


def _raised(case: CaseResult) -> Fix:
    """What Python code raises, or what of a kernel in Triton does not compile."""
    fault = readable(_behind_its_place(case))
    return Fix(
        fault=_capital(fault) if fault.startswith("the ") else fault,
        do=next((do for words, do in RAISED if words in fault), ""),
        file=line(case.file),
        line=case.line,
        text=_line(case.source, case.line),
        source=case.source,
        detail=f"in {case.name}",
    )


def _telling(cases: Iterable[CaseResult]) -> CaseResult | None:
    """The case whose diagnosis tells most; among equals one that says what most of them say.

    A statement on few of many cases is worth no more than a question: another fault may look like that there.
    A question that is asked of few of many cases, and nothing of the others, is worth no more than silence.
    """
    causes = [(case, _cause(case)) for case in cases]
    counts = Counter((cause.outputs, cause.kind) for _, cause in causes)
    unknown = sum(cause.certainty is Certainty.UNKNOWN for _, cause in causes)
    mostly_unknown = 2 * unknown > len(causes)

    def rank(diagnosed: tuple[CaseResult, Diagnosis]) -> tuple[int, int]:
        _, cause = diagnosed
        count = counts[cause.outputs, cause.kind]
        doubt = cause.certainty.doubt
        if count * _RARE < len(causes):
            doubt = max(doubt, Certainty.ASKED.doubt)
        if doubt == Certainty.ASKED.doubt and count * _RARE_QUESTION <= len(causes) and mostly_unknown:
            doubt = Certainty.UNKNOWN.doubt
        return doubt, -count

    best = min(causes, key=rank, default=None)
    return best and _in_larger_cases(best, [cause for cause in causes if rank(cause)[0] == rank(best)[0]])


def _in_larger_cases(
    best: tuple[CaseResult, Diagnosis], others: list[tuple[CaseResult, Diagnosis]]
) -> CaseResult:
    """The best case, or one of several that are all larger than those that say the same as it.

    A loop that leaves out the end of each row looks like one that is not there, where rows are short.
    """
    totals: dict[object, list[int]] = {}
    for case, cause in others:
        output = _bad(case)
        totals.setdefault((cause.outputs, cause.kind), []).append(output.total if output else 0)
    largest = max(totals[best[1].outputs, best[1].kind])
    return next(
        (
            case
            for case, cause in others
            if len(same := totals[cause.outputs, cause.kind]) > 1 and min(same) > largest
        ),
        best[0],
    )


def _cause(case: CaseResult) -> Diagnosis:
    """The diagnosis of a case that tells most; one of the whole case stands for that of its first output."""
    of_case = [diagnosis for diagnosis in case.diagnoses if not diagnosis.outputs][:1]
    of_outputs = [diagnosis for diagnosis in case.diagnoses if diagnosis.outputs][len(of_case) :]
    return min((*of_case, *of_outputs), key=lambda diagnosis: diagnosis.certainty.doubt, default=NO_CAUSE)


def _bad(case: CaseResult, names: Collection[str] = ()) -> OutputResult | None:
    """The first wrong output, of those with these ``names`` if there is one."""
    wrong_outputs = [output for output in case.outputs if output.bad]
    return min(wrong_outputs, key=lambda output: output.name not in names, default=None)


def _element(case: CaseResult, names: Collection[str] = (), examples: str = "") -> str:
    """The worst of the wrong elements that the record holds of such an output, and how many are wrong.

    It holds none of an output of which more than one content is right. Of that a checker gives ``examples``.
    """
    output = _bad(case, names)
    if output is None:
        return f"in {case.name}"
    counts = f"{output.bad:,} of {output.total:,} wrong"
    if not output.first_bad:
        return f"{examples or output.name} in {case.name}: {counts}"
    worst = _worst(output)
    index = ", ".join(map(str, worst.index))
    expected, actual = number(worst.expected), number(worst.got)
    if expected == actual:
        expected, actual = (f"{value:.9g}" for value in (worst.expected, worst.got))
    return f"{output.name}[{index}] in {case.name}: expected {expected}, got {actual} ({counts})"


def _worst(output: OutputResult) -> BadElement:
    """The wrong element that is furthest off, of those that the record holds."""
    return max(output.first_bad, key=_error)


def _last_store(case: CaseResult, names: Collection[str]) -> StoreRecord | None:
    """What stored the element that ``_element`` shows; None where nobody has looked."""
    output = _bad(case, names)
    return _worst(output).last_store if output and output.first_bad else None


def _error(element: BadElement) -> float:
    expected, actual = element.expected, element.got
    return inf if isinstance(expected, str) or isinstance(actual, str) else abs(actual - expected)


def _speed(problem: ProblemResult) -> Iterator[Fix]:
    """What is slow, and the first hint of the simulator."""
    performance = problem.performance
    if performance.verdict is not Verdict.FAIL or performance.speedup is None:
        return
    over = "the baseline" if performance.measure == "speedup" else performance.compared_with
    speed = f"It is {performance.speedup:.2f}x as fast as {over}, the target is {performance.target:g}x."
    hint = next(iter(hints(problem)), None)
    if hint is None:
        yield Fix(TOO_SLOW, speed)
    else:
        text = _line(hint.source, hint.line)
        yield Fix(
            TOO_SLOW, f"{speed} {readable(hint.message)}", line(hint.file), hint.line, text, hint.source
        )


def _demands(problem: ProblemResult) -> Iterator[Fix]:
    """What else the assignment asks for and was not met."""
    for demand in problem.demands:
        if demand.verdict is Verdict.FAIL and demand.found is not None:
            measure = MEASURES[demand.measure]
            observation = measure.observation.format(figure(demand.measure, demand.found))
            where = f" ({demand.message})" if demand.message else ""
            asked = f"{bound(demand.most, demand.least)}{_OR_NOTHING if demand.required else ''}"
            right = problem.correctness.verdict is Verdict.PASS
            fault = f"Right, but {measure.fault}" if right else measure.fault.capitalize()
            yield Fix(fault, f"{observation}{where}, of {asked}.")


def _quoted(location: str, text: str) -> str:
    return (
        f"{location}: {shorten(line(text), MOST_CHARACTERS, placeholder=' ...')}"
        if text.strip()
        else location
    )


def _capital(text: str) -> str:
    """The text as a sentence begins, but for a name that it begins with."""
    return text if "_" in text.partition(" ")[0] else text[:1].upper() + text[1:]
