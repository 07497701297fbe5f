"""Shows a record in GitHub Actions: a job summary, annotations at source lines, and an escaped log.

A line of a log that begins with ``::`` is a workflow command. So a student's text is printed between
``stop-commands`` and a random token, and the parts of our own commands are escaped.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from grader.reports import console
from grader.reports.causes import COMPILE_ERROR, sightings
from grader.reports.escaping import line, readable, workflow_message, workflow_property
from grader.reports.fix_first import causes, fix_first
from grader.reports.gradebook import shown, totals
from grader.submissions.submission import SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TextIO

    from grader.records.record import ProblemResult, Record
    from grader.reports.views import View

MOST = 10  # GitHub shows at most this many annotations of a kind for one step
SUMMARY_BYTES = 256 << 10  # GitHub rejects more than 1 MiB for a step


def is_running(environment: Mapping[str, str]) -> bool:
    """Whether this is a step of a workflow."""
    return environment.get("GITHUB_ACTIONS") == "true"


def show(record: Record, shown: View, path: Path, to: TextIO, environment: Mapping[str, str]) -> None:
    """Print the record of the submission at ``path`` folded, and annotations; add to the job's summary."""
    print("::group::Details", file=to)
    with commands_stopped(to):
        console.details(record, to, verbose=True)
    print("::endgroup::", file=to)
    for command in commands(shown, _paths(path)):
        print(command, file=to)
    if file := environment.get("GITHUB_STEP_SUMMARY"):
        with contextlib.suppress(OSError), Path(file).open("a", encoding="utf-8") as summaries:
            summaries.write(summary(shown))


@contextlib.contextmanager
def commands_stopped(to: TextIO) -> Iterator[None]:
    """A context in which GitHub does not read workflow commands from the printed text."""
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}", file=to, flush=True)
    try:
        yield
    finally:
        print(f"\n::{token}::", file=to, flush=True)


def commands(view: View, paths: Mapping[str, str]) -> tuple[str, ...]:
    """Workflow commands for errors of the compiler, findings of the checkers, and hints.

    Args:
        view: the record as it may be shown.
        paths: the path of each file of the submission in the repository, by name.
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
    """The job's summary in Markdown; a student's text is in ``code`` elements, where markup has no effect."""
    record = view.record
    score, decided, possible = map(shown, totals(record))
    points = f"{score} of {decided} points decided here" if score else "no score"
    lines = [f"### {_code(record.submission.name)}: {points} ({possible} possible)", ""]
    texts = (*record.errors, *record.submission.notes)
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


def _paths(path: Path) -> dict[str, str]:
    """The paths of the sources in the repository, by those names that occur only once."""
    by_name: dict[str, list[str]] = {}
    for file in sorted(path.rglob("*")) if path.is_dir() else ():
        if file.suffix in SOURCES:
            by_name.setdefault(file.name, []).append(os.path.relpath(file))
    return {name: paths[0] for name, paths in by_name.items() if len(paths) == 1}


def _reasons(problem: ProblemResult) -> list[str]:
    """What to mend first, in its lines, and the other causes."""
    first = fix_first(problem)
    reasons = (*(first.lines if first else ()), *causes(problem)[1:])
    return [*reasons[:MOST], "..."] if len(reasons) > MOST else list(reasons)


def _errors(problem: ProblemResult, paths: Mapping[str, str]) -> Iterator[str]:
    if problem.build and not problem.build.ok:
        for error in COMPILE_ERROR.finditer(problem.build.log):
            file = error["file"].rpartition("/")[2]
            yield _command(
                "error", paths.get(file, file), int(error["line"] or error["row"]), "nvcc", error["message"]
            )
    for sighting in (sighting for sighting in sightings(problem) if not sighting.waived):
        title = f"{problem.title}: {sighting.tool} {sighting.kind}"
        yield _command(
            "error", paths.get(sighting.file, sighting.file), sighting.line, title, readable(sighting.message)
        )


def _command(level: str, file: str, number: int, title: str, message: str) -> str:
    position = f"file={workflow_property(line(file))},line={number}," if file and number > 0 else ""
    return f"::{level} {position}title={workflow_property(line(title))}::{workflow_message(message)}"


def _limited(commands: Sequence[str], level: str) -> list[str]:
    """Unique annotations, at most as many as GitHub shows, because it drops others silently."""
    distinct = list(dict.fromkeys(commands))
    if len(distinct) <= MOST:
        return distinct
    return [
        *distinct[: MOST - 1],
        f"::{level} title=More::and {len(distinct) - MOST + 1} more, in the job's summary and log",
    ]


def _code(text: str) -> str:
    return f"<code>{escape(line(text))}</code>"
