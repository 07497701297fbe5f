"""The record in GitHub Actions: a job summary, annotations at source lines, and an escaped log.

A line of a log that begins with ``::`` is a command to the runner. So what a student wrote is printed between
``stop-commands`` and a token that nobody can guess, and the parts of our own commands are escaped.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from grader.reports import console
from grader.reports.causes import COMPILE_ERROR, causes, sightings
from grader.reports.escaping import line, workflow_message, workflow_property
from grader.reports.gradebook import totals
from grader.submissions.submission import SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TextIO

    from grader.records.record import ProblemResult, Record
    from grader.reports.views import View

MOST = 10  # annotations of a kind that GitHub shows of one step
SUMMARY_BYTES = 256 << 10  # GitHub refuses more than 1 MiB for a step


def is_running(environment: Mapping[str, str]) -> bool:
    """Whether this is a step of a workflow."""
    return environment.get("GITHUB_ACTIONS") == "true"


def show(record: Record, shown: View, path: Path, to: TextIO, environment: Mapping[str, str]) -> None:
    """Print the record of ``path`` folded, and annotations; add to the job's summary."""
    print("::group::Details", file=to)
    with commands_stopped(to):
        console.details(record, to)
    print("::endgroup::", file=to)
    for command in commands(shown, _places(path)):
        print(command, file=to)
    if file := environment.get("GITHUB_STEP_SUMMARY"):
        with contextlib.suppress(OSError), Path(file).open("a", encoding="utf-8") as summaries:
            summaries.write(summary(shown))


@contextlib.contextmanager
def commands_stopped(to: TextIO) -> Iterator[None]:
    """Stop GitHub from reading workflow commands in what is printed."""
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}", file=to, flush=True)
    try:
        yield
    finally:
        print(f"\n::{token}::", file=to, flush=True)


def commands(view: View, paths: Mapping[str, str]) -> tuple[str, ...]:
    """Workflow commands: errors of the compiler and findings of the checkers, then hints.

    Args:
        view: what of the record may be shown.
        paths: where each file of the submission lies in the repository, by name.
    """
    errors, notices = [], []
    for problem in view.record.problems:
        errors += list(_errors(problem, paths))
        notices += [
            _command(
                "notice", paths.get(hint.file, hint.file), hint.line, f"{problem.title}: hint", hint.message
            )
            for hint in problem.hints
        ]
    return (*_limited(errors, "error"), *_limited(notices, "notice"))


def summary(view: View) -> str:
    """Markdown for the job; a student's words are in ``code``, where nothing has a meaning."""
    record = view.record
    score, decided, possible = totals(record)
    shown = f"{score} of {decided} points decided here" if score else "no score"
    lines = [f"### {_code(record.submission.name)}: {shown} ({possible} possible)", ""]
    texts = (record.error, record.submission.error, *record.submission.notes)
    lines += [f"- {_code(text)}" for text in texts if text]
    lines += [
        "",
        "<table><tr><th>Problem</th><th>Verdict</th><th>Points</th><th>Speedup</th><th>Why</th></tr>",
    ]
    for problem in record.problems:
        speedup = problem.performance.speedup
        cells = [
            _code(problem.title),
            str(problem.verdict),
            f"{problem.points.earned:.2f} of {problem.points.decided:.2f}",
            "" if speedup is None else f"{speedup:.2f}x",
            "<br>".join(map(_code, _reasons(problem))),
        ]
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    lines += ["</table>", ""]
    text = "\n".join(lines) + "\n"
    if len(text.encode()) <= SUMMARY_BYTES:
        return text
    return "\n".join([*lines[:2], "The table is too long for a summary: see the record."]) + "\n"


def _places(path: Path) -> dict[str, str]:
    """Where the sources lie in the repository, by name, as far as that is clear."""
    found: dict[str, list[str]] = {}
    for place in sorted(path.rglob("*")) if path.is_dir() else ():
        if place.suffix in SOURCES:
            found.setdefault(place.name, []).append(os.path.relpath(place))
    return {name: places[0] for name, places in found.items() if len(places) == 1}


def _reasons(problem: ProblemResult) -> list[str]:
    found = causes(problem)
    return [*found[:MOST], "..."] if len(found) > MOST else list(found)


def _errors(problem: ProblemResult, paths: Mapping[str, str]) -> Iterator[str]:
    if problem.build and not problem.build.ok:
        for error in COMPILE_ERROR.finditer(problem.build.log):
            file = error["file"].rpartition("/")[2]
            yield _command(
                "error", paths.get(file, file), int(error["line"] or error["row"]), "nvcc", error["message"]
            )
    for place in (place for place in sightings(problem) if not place.waived):
        title = f"{problem.title}: {place.tool} {place.kind}"
        yield _command("error", paths.get(place.file, place.file), place.line, title, place.message)


def _command(level: str, file: str, number: int, title: str, message: str) -> str:
    place = f"file={workflow_property(line(file))},line={number}," if file and number > 0 else ""
    return f"::{level} {place}title={workflow_property(line(title))}::{workflow_message(message)}"


def _limited(commands: Sequence[str], level: str) -> list[str]:
    """Unique annotations, as many as GitHub shows; it silently drops the rest."""
    distinct = list(dict.fromkeys(commands))
    if len(distinct) <= MOST:
        return distinct
    return [
        *distinct[: MOST - 1],
        f"::{level} title=More::and {len(distinct) - MOST + 1} more, in the job's summary and log",
    ]


def _code(text: str) -> str:
    return f"<code>{escape(line(text))}</code>"
