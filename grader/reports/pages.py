"""The HTML pages: one for each submission, and one for the class.

A page loads no other files. Its content security policy allows only the grader's own script and style, by
their hashes. Everything that a student wrote is escaped text.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from grader.records.verdict import Verdict
from grader.reports.causes import alike, hints, sightings, unmeasured, wrong
from grader.reports.charts import picture, roofline, speedups
from grader.reports.classroom import Classroom, attention, boards, failures, overview
from grader.reports.escaping import line, plain, readable
from grader.reports.explanations import explanations
from grader.reports.fix_first import example, fix_first, fixes, largest_error, number
from grader.reports.gradebook import earned, note, shown, totals
from grader.reports.unreached import sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from grader.records.record import BuildResult, ProblemResult, Record
    from grader.reports.views import View

SHOWN = 6  # wrong cases, places of findings, submissions to look at; of more, some are folded
COMMON = 2  # all students see a failure of this many submissions; with fewer, it would identify one
GLYPHS = {
    Verdict.PASS: "\u2713",
    Verdict.FAIL: "\u2717",
    Verdict.AMBIGUOUS: "\u2248",
    Verdict.UNTRUSTED: "\u26a0",
    Verdict.NOT_MEASURED: "\u2013",
    Verdict.INFRA_ERROR: "\u26a0",
}
WORDS = {
    Verdict.PASS: "passed",
    Verdict.FAIL: "failed",
    Verdict.AMBIGUOUS: "too close to call",
    Verdict.UNTRUSTED: "not trusted",
    Verdict.NOT_MEASURED: "not measured",
    Verdict.INFRA_ERROR: "machine fault",
}


def submission_page(view: View, title: str) -> str:
    """The page of one record; ``title`` is the title of the assignment."""
    record = view.record
    score, decided, _ = map(shown, totals(record))
    undecided = record.score.possible - record.score.decided
    alerts = [text for text in (*record.errors, *record.submission.notes) if text]
    problems = [_problem(problem) for problem in record.problems]
    return _ENVIRONMENT.get_template("submission.html").render(
        record=record,
        staff=view.staff,
        title=title,
        alerts=alerts,
        score=score,
        decided=decided,
        possible=f"{record.score.possible:g}",
        undecided=f"{undecided:g}" if undecided > 0 else "",
        unmeasured=unmeasured(record),
        problems=problems,
        headline=_headline(record),
        explanations=_explanations(problems),
        command=_command(view),
        shown=SHOWN,
    )


def class_page(
    results: Mapping[str, Record | None],
    title: str,
    *,
    staff: bool,
    aliases: Mapping[str, str] | None = None,
    links: Mapping[str, str] | None = None,
) -> str:
    """The page of the whole class.

    Staff see names, notes and submissions to check. Students see the results of the class as a whole, and on
    the speed board only those who chose an alias.

    Args:
        results: the records by submission, None for one without a result.
        title: title of the assignment.
        staff: whether the page is for staff.
        aliases: names of submissions on the speed board.
        links: paths of the submissions' pages, relative to this one.
    """
    classroom = Classroom(results, aliases or {}, {name: quote(path) for name, path in (links or {}).items()})
    return _ENVIRONMENT.get_template("class.html").render(
        title=title,
        staff=staff,
        summary=classroom.summary,
        problems=overview(classroom),
        attention=attention(classroom) if staff else (),
        failures=failures(classroom, fewest=1 if staff else COMMON),
        boards=boards(classroom, everybody=staff),
        rows=_rows(classroom) if staff else (),
        shown=SHOWN,
    )


def leaderboard_page(results: Mapping[str, Record | None], title: str, aliases: Mapping[str, str]) -> str:
    """The speeds of the submissions that have an alias, under these names alone."""
    listed = boards(Classroom(results, aliases, {}), everybody=False)
    return _ENVIRONMENT.get_template("leaderboard.html").render(title=title, boards=listed)


def _headline(record: Record) -> str:
    """The result in one sentence, with the problem to begin with."""
    decided = [problem for problem in record.problems if problem.verdict.decided]
    right = sum(problem.verdict in {Verdict.PASS, Verdict.AMBIGUOUS} for problem in decided)
    if not decided:
        return ""
    if right == len(decided):
        return "Everything that was checked here is right."
    first = next((problem for problem in decided if fix_first(problem)), None)
    begin = f" Begin with {line(first.title)}." if first else ""
    problems = "problem" if len(decided) == 1 else "problems"
    return (
        f"{right} of {len(decided)} {problems} {'is' if 1 in {right, len(decided)} else 'are'} right.{begin}"
    )


def _explanations(problems: Iterable[Mapping[str, Any]]) -> dict[str, Markup]:
    """What the docs say of the kinds of findings that a page shows."""
    fixed = (fix.kind for item in problems for fix in item["fixes"])
    sighted = (sighting.kind for item in problems for sighting in item["places"])
    documented = explanations()
    return {kind: documented[kind] for kind in dict.fromkeys((*fixed, *sighted)) if kind in documented}


def _problem(problem: ProblemResult) -> dict[str, Any]:
    to_mend = fixes(problem)
    groups = [
        {
            "name": group.name,
            "verdict": group.verdict,
            "earned": group.earned,
            "decided": group.possible if group.verdict.decided else 0,
            "cases": sum(case.group == group.name and not case.waived for case in problem.correctness.cases),
            "right": sum(
                case.group == group.name and case.verdict is Verdict.PASS and not case.waived
                for case in problem.correctness.cases
            ),
        }
        for group in problem.correctness.groups
        if problem.correctness.cases
    ]
    return {
        "problem": problem,
        "fixes": to_mend,
        "missing": _missing(to_mend[0].do) if to_mend else "",
        "example": "" if not to_mend or to_mend[0].example else example(problem),
        "lost": [group for group in groups if group["verdict"] is not Verdict.PASS],
        "passed": [group for group in groups if group["verdict"] is Verdict.PASS],
        "wrong": () if problem.correctness.summary else alike(wrong(problem)),
        "right": [
            case for case in problem.correctness.cases if case.verdict is Verdict.PASS and not case.waived
        ],
        "waived": [case for case in problem.correctness.cases if case.waived],
        "places": sightings(problem),
        "hints": hints(problem),
        "unreached": list(sentences(problem.correctness.unreached)),
        "speedups": speedups(problem.performance),
        "roofline": roofline(problem.performance),
        "built": _built(problem.build),
    }


def _missing(do: str) -> str:
    """What is not between the two accesses of a race, by what is to be done."""
    barrier = next((word for word in ("__syncthreads()", "__syncwarp()") if word in do), None)
    return f"No {barrier} stands between" if barrier else "Nothing orders"


def _built(build: BuildResult | None) -> str:
    if build is None:
        return ""
    parts = ["from the cache" if build.cached else f"{build.seconds:.1f} s"]
    if build.resources:
        parts.append(f"up to {max(kernel.registers for kernel in build.resources)} registers")
        spilled = sum(kernel.spill_bytes > 0 for kernel in build.resources)
        parts.append(f"{spilled} kernels spill" if spilled else "no spills")
    parts += [build.code] if build.code else []
    return ", ".join(parts)


def _rows(classroom: Classroom) -> list[dict[str, Any]]:
    rows = []
    for name, record in sorted(classroom.results.items()):
        problems = {problem.id: problem for problem in record.problems} if record else {}
        score, decided, _ = map(shown, totals(record))
        rows.append(
            {
                "name": name,
                "link": classroom.links.get(name, ""),
                "score": score,
                "decided": decided,
                "cells": [_cell(problems.get(problem_id)) for problem_id in classroom.titles],
                "note": note(record),
            }
        )
    return rows


def _cell(problem: ProblemResult | None) -> dict[str, str]:
    return {"verdict": problem.verdict if problem else "", "points": shown(earned(problem))}


def _command(view: View) -> str:
    record = view.record
    words = ["grader grade SUBMISSION", f"--assignment {line(record.assignment)}"]
    words += [f"--device {record.device.kind}"] if record.device else []
    if len(memories := {problem.memory for problem in record.problems if problem.correctness.cases}) == 1:
        words.append(f"--memory {memories.pop()}")
    words += [f"--seed {record.seed}"] if view.staff else []
    return " ".join(words)


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _environment() -> Environment:
    templates = files("grader.reports") / "templates"
    style = (templates / "style.css").read_text(encoding="utf-8")
    script = (templates / "sort.js").read_text(encoding="utf-8")
    environment = Environment(
        loader=PackageLoader("grader.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "plain": plain,
        "line": line,
        "readable": readable,
        "two": lambda value: f"{value:.2f}",
        "short": lambda value: f"{value:g}",
        "count": lambda value: f"{value:,}",
        "percent": lambda share: f"{share:.0%}",
        "value": number,
        "error": largest_error,
        "picture": picture,
        "cases": lambda count: f"{count} case" if count == 1 else f"{count} cases",
    }
    environment.globals |= {
        "glyphs": GLYPHS,
        "words": WORDS,
        "style": Markup(style),  # noqa: S704 - our own files
        "script": Markup(script),  # noqa: S704
        "policy": f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'",
    }
    return environment


_ENVIRONMENT = _environment()
