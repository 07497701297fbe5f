"""Shows a record as text for a terminal: a header, each problem, and the score as last line.

Of a problem that lost points it shows what to mend first, in three lines, and one wrong number. The rest
(cases, places of findings, builds, hints) is shown where asked for, and stands in the record.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.records.verdict import Verdict
from grader.reports.causes import sightings, unmeasured
from grader.reports.escaping import plain, readable
from grader.reports.fix_first import example, fixes, largest_error, number
from grader.reports.unreached import sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TextIO

    from rich.console import RenderableType

    from grader.records.record import (
        BuildResult,
        CaseResult,
        CorrectnessResult,
        DemandResult,
        OutputResult,
        Points,
        ProblemResult,
        Record,
    )
    from grader.reports.fix_first import Fix

WIDTH = 110
SHOWN_CASES = 4
SHOWN_FINDINGS = 6
SHOWN_HINTS = 3  # on speed, of a right kernel whose speed nobody has measured
SHOWN_LOG_LINES = 30
STYLES = {
    Verdict.PASS: "green",
    Verdict.FAIL: "red",
    Verdict.AMBIGUOUS: "yellow",
    Verdict.UNTRUSTED: "magenta",
    Verdict.NOT_MEASURED: "dim",
    Verdict.INFRA_ERROR: "yellow",
}


def show(record: Record, to: TextIO, *, verbose: bool = False) -> None:
    """Write ``record`` to ``to``; colours only on a terminal, and none with NO_COLOR."""
    details(record, to, verbose=verbose)
    print(last_line(record.score), file=to)


def details(record: Record, to: TextIO, *, verbose: bool = False) -> None:
    """Write ``record`` without the last line; all of it if ``verbose``."""
    _console(to).print(header(record, verbose=verbose))
    untold = [  # what ended the whole run stands in the header
        problem.model_copy(update={"message": ""}) if problem.message == record.error else problem
        for problem in record.problems
    ]
    problems(record.model_copy(update={"problems": untold}), to, verbose=verbose)
    if record.problems and not verbose:
        _console(to).print(Text("--verbose shows all cases, findings, builds and hints.", style="dim"))


def problems(record: Record, to: TextIO, *, verbose: bool = False) -> None:
    """Write the problems of ``record`` alone."""
    console = _console(to)
    for problem in record.problems:
        console.print()
        console.print(Group(*_problem(problem, verbose=verbose)))
    console.print()


def _console(to: TextIO) -> Console:
    return Console(file=to, width=None if to.isatty() else WIDTH, highlight=False, markup=False, emoji=False)


def last_line(score: Points) -> str:
    """The last line of ``grader grade``, which scripts read."""
    return f"Score: {score.earned:.1f}/{score.decided:.1f} ({score.possible:.1f} possible)"


def header(record: Record, *, verbose: bool = False) -> RenderableType:
    """Submission, grader version, where and with which seed it was graded, and the errors of the whole run.

    Why on that device, with which compiler, and what the sandbox does not stop is for those who ask for all.
    """
    lines = [
        Text(f"Results for {plain(record.submission.name)} by grader {record.grader.version}", style="bold")
    ]
    device, sandbox = record.device, record.sandbox
    graded = [device.name] if device else []
    graded += [f"sandbox {sandbox.backend}"] if sandbox else []
    lines.append(Text(f"on       {'; '.join([*graded, f'seed {record.seed}'])}"))
    if verbose:
        if device:
            compiler = f", compiled by {device.compiler}" if device.compiler else ""
            lines.append(Text(f"         {device.reason}{compiler}"))
        if sandbox and sandbox.not_enforced:
            lines.append(Text(f"         does not stop: {', '.join(sandbox.not_enforced)}", style="yellow"))
        lines.append(Text(f"         the same inputs again: --seed {record.seed}"))
    lines += [Text(f"speed    {text}") for text in unmeasured(record)]
    lines += [Text(f"note     {plain(note)}", style="yellow") for note in record.submission.notes]
    lines += [Text(plain(error), style="bold red") for error in record.errors]
    return Group(*lines)


def _problem(problem: ProblemResult, *, verbose: bool) -> Iterator[RenderableType]:
    undecided = problem.points.possible - problem.points.decided
    title = Table.grid(expand=False, padding=(0, 2))
    title.add_row(
        Text(f"{problem.title} ({problem.id}){problem.written_in}", style="bold"),
        Text(problem.verdict, style=STYLES[problem.verdict]),
        Text(f"{problem.points.earned:.1f}/{problem.points.decided:.1f} points"),
        Text(f"({undecided:.1f} undecided)" if undecided else "", style="dim"),
    )
    yield title
    stages = Table.grid(padding=(0, 2))
    stages.add_column(style="dim", width=12)
    stages.add_column()
    to_mend = fixes(problem)
    for label, lines in _first(problem, to_mend):
        stages.add_row(label, Group(*lines))
    if problem.message and (verbose or not to_mend):
        stages.add_row("", plain(problem.message))
    for note in problem.notes if verbose or not problem.correctness.summary else ():
        stages.add_row("note", Text(plain(note), style="yellow"))
    if problem.build and (verbose or not problem.build.ok):
        stages.add_row("build", Group(*_build(problem.build)))
    if problem.correctness.cases:
        correctness = problem.correctness
        stages.add_row("correctness", Group(*(_groups(correctness) if verbose else _counts(correctness))))
    for label, lines in _rest(problem) if verbose else _hints_unasked(problem):
        stages.add_row(label, Group(*_capped(lines, SHOWN_FINDINGS)))
    for label, parts in _beside(problem, verbose=verbose):
        stages.add_row(label, Group(*parts))
    yield Padding(stages, (0, 0, 0, 2))


def _first(problem: ProblemResult, to_mend: tuple[Fix, ...]) -> Iterator[tuple[str, list[Text]]]:
    """What to mend first, the numbers that show it, and what else there is."""
    if not to_mend:
        return
    first, *further = to_mend
    headline, *rest = first.lines
    yield (
        "undecided" if first.undecided else "fix first",
        [Text(plain(headline), style="bold"), *(Text(plain(text)) for text in rest)],
    )
    shown = "" if first.example else example(problem)
    for label, text in (("seen", first.detail), ("example", shown)):
        if text:
            yield label, [Text(plain(text), style="dim")]
    if further:
        yield "then", [Text(plain(fix.cause)) for fix in further]


def _beside(problem: ProblemResult, *, verbose: bool) -> Iterator[tuple[str, list[RenderableType]]]:
    """What there is beside correctness."""
    if problem.performance.verdict is not Verdict.NOT_MEASURED:
        yield "performance", list(_performance(problem, verbose=verbose))
    if problem.demands:
        yield "demands", [_demand(demand) for demand in problem.demands]
    if problem.printed:
        yield "printed", [Text("\n".join(plain(problem.printed).splitlines()[-5:]))]


def _hints(problem: ProblemResult) -> list[Text]:
    return [Text(f"{plain(hint.file)}:{hint.line}  {readable(hint.message)}") for hint in problem.hints]


def _hints_unasked(problem: ProblemResult) -> Iterator[tuple[str, list[Text]]]:
    """The first hints on the speed of a right kernel, where nobody has measured it."""
    unmeasured_speed = problem.performance.verdict is Verdict.NOT_MEASURED
    if problem.hints and unmeasured_speed and problem.correctness.verdict is Verdict.PASS:
        yield "hints", _hints(problem)[:SHOWN_HINTS]


def _rest(problem: ProblemResult) -> Iterator[tuple[str, list[Text]]]:
    """The findings, hints and doubts."""
    if findings := list(_findings(problem)):
        yield "checks", findings
    if problem.hints:
        yield "hints", _hints(problem)
    if problem.correctness.unreached:
        yield "unreached", [Text(plain(text)) for text in sentences(problem.correctness.unreached)]
    if problem.trust.reasons:
        yield "trust", [Text(plain(reason), style="magenta") for reason in problem.trust.reasons]


def _build(build: BuildResult) -> Iterator[RenderableType]:
    if not build.ok:
        yield Text("did not compile", style="red")
        yield from _capped([Text(plain(line)) for line in build.log.splitlines()], SHOWN_LOG_LINES)
        return
    parts = ["ok, from the cache" if build.cached else f"ok, {build.seconds:.1f} s"]
    if build.resources:
        parts.append(f"up to {max(kernel.registers for kernel in build.resources)} registers")
        spilling = [kernel for kernel in build.resources if kernel.spill_bytes]
        parts += [f"{plain(kernel.kernel)} spills {kernel.spill_bytes} bytes" for kernel in spilling] or [
            "no spills"
        ]
    parts += [build.code] if build.code else []
    yield Text(", ".join(parts))


def _counts(correctness: CorrectnessResult) -> Iterator[Text]:
    """How many cases are right, and the groups that are not."""
    counted = [case for case in correctness.cases if not case.waived]
    passed = sum(case.verdict is Verdict.PASS for case in counted)
    lost = [
        group for group in correctness.groups if group.verdict not in {Verdict.PASS, Verdict.NOT_MEASURED}
    ]
    not_run = sum(case.verdict is Verdict.NOT_MEASURED for case in counted)
    yield Text(f"{passed}/{len(counted) - not_run} cases{f' ({not_run:,} were not run)' if not_run else ''}")
    if lost and len(lost) == len(correctness.groups):
        yield Text("every group of cases lost its points")
    elif lost:
        names = ", ".join(group.name for group in lost)
        yield Text(f"{len(lost)} of {len(correctness.groups)} groups lost points: {names}")
    for reason, count in Counter(case.waived for case in correctness.cases if case.waived).items():
        yield Text(f"{count} more {'case' if count == 1 else 'cases'} waived: {reason}", style="dim")


def _groups(correctness: CorrectnessResult) -> Iterator[RenderableType]:
    """Every group of cases, and the first cases that are wrong."""
    counted = [case for case in correctness.cases if not case.waived]
    passed = sum(case.verdict is Verdict.PASS for case in counted)
    yield Text(f"{passed}/{len(counted)} cases")
    if correctness.summary:
        yield Text(plain(correctness.summary))
        return
    groups = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("case group", "cases", "points", ""):
        groups.add_column(column, justify="right" if column in {"cases", "points"} else "left")
    for group in correctness.groups:
        cases = [case for case in counted if case.group == group.name]
        right = sum(case.verdict is Verdict.PASS for case in cases)
        groups.add_row(
            group.name,
            f"{right}/{len(cases)}" if cases else "",
            f"{group.earned:.2f}/{group.possible:.2f}",
            Text(group.verdict, style=STYLES[group.verdict]),
        )
    yield groups
    for reason, count in Counter(case.waived for case in correctness.cases if case.waived).items():
        yield Text(f"{count} more {'case' if count == 1 else 'cases'} waived: {reason}", style="dim")
    wrong = [case for case in counted if case.verdict is not Verdict.PASS]
    for case in wrong[:SHOWN_CASES]:
        yield from _case(case)
    if len(wrong) > SHOWN_CASES:
        yield Text(f"and {len(wrong) - SHOWN_CASES} more cases in the record (--json FILE)", style="dim")


def _case(case: CaseResult) -> Iterator[RenderableType]:
    order = f" in {case.schedule}" if case.schedule else ""
    yield Text(f"{case.name}: {case.verdict}{order}", style=STYLES[case.verdict])
    for text in (case.message, case.diagnosis):
        if text:
            yield Text(f"  {readable(text)}")
    for output in case.outputs:
        if output.bad:
            yield Text(f"  {_output(output)}")
            for element in output.first_bad:
                where = ", ".join(map(str, element.index))
                yield Text(f"    [{where}] expected {number(element.expected)}, got {number(element.got)}")


def _output(output: OutputResult) -> str:
    strange = [
        f"{count:,} {word}" for count, word in ((output.nan, "NaN"), (output.infinite, "infinite")) if count
    ]
    counts = f" ({', '.join(strange)})" if strange else ""
    return f"{output.name}: {output.bad:,} of {output.total:,} wrong{counts}{largest_error(output)}"


def _findings(problem: ProblemResult) -> Iterator[Text]:
    """One line for each sighting; waived ones come last."""
    for sighting in sorted(sightings(problem), key=lambda sighting: bool(sighting.waived)):
        waived = f" (waived: {sighting.waived})" if sighting.waived else ""
        yield Text(f"{sighting.tool} {sighting.kind}  {sighting.where}  {readable(sighting.message)}{waived}")


def _performance(problem: ProblemResult, *, verbose: bool) -> Iterator[RenderableType]:
    performance = problem.performance
    if performance.speedup is not None and performance.interval is not None:
        low, high = performance.interval
        yield Text(
            f"{performance.speedup:.2f}x {performance.compared_with} ({low:.2f} to {high:.2f}), target "
            f"{performance.target:g}x: {performance.verdict}",
            style=STYLES[performance.verdict],
        )
        if not verbose:
            return
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for column in ("case (times in us)", "baseline", "yours", "speedup", "interval", "of bandwidth"):
            table.add_column(column, justify="left" if column.startswith("case") else "right")
        for case in performance.cases:
            table.add_row(
                case.name,
                *(f"{time:.1f}" if time is not None else "" for time in (case.baseline_us, case.yours_us)),
                f"{case.speedup:.2f}x" if case.speedup is not None else case.verdict,
                f"{case.interval[0]:.2f}-{case.interval[1]:.2f}" if case.interval else "",
                f"{case.bandwidth_fraction:.0%}" if case.bandwidth_fraction is not None else "",
            )
        yield table
    else:
        yield Text(performance.verdict, style=STYLES[performance.verdict])
    if performance.message:
        yield Text(plain(performance.message))
    for text in performance.info:
        yield Text(plain(text), style="dim")


def _demand(demand: DemandResult) -> Text:
    verdict = "" if demand.found is None else f": {demand.verdict}"
    return Text(f"{plain(demand.said)}{verdict}", style=STYLES[demand.verdict])


def _capped(lines: list[Text], most: int) -> Iterable[Text]:
    if len(lines) <= most:
        return lines
    return [*lines[:most], Text(f"[...] {len(lines) - most} more in the record (--json FILE)", style="dim")]
