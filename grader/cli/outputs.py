"""What ``grader grade`` writes and prints of a record."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from grader.records.exit_codes import ExitCode
from grader.records.record import RecordError, write, write_text
from grader.records.verdict import Ending
from grader.reports import console, editors, github, gradescope, junit, pages
from grader.reports.fix_first import telling_case
from grader.reports.views import view
from grader.run.reproduction import is_reproducible

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from grader.assignments.assignment import Assignment
    from grader.records.record import Record


@dataclass(frozen=True)
class Outputs:
    """What the command line asks for.

    Attributes:
        assignment: that is graded.
        option: how the command line names it; empty if it does not.
        path: of the submission.
        json, html, junit, gradescope: files to write.
        staff: whether they show what is not for students.
        verbose: whether the console shows all.
        quiet: whether it shows the last line alone.
        for_editors: whether it shows lines such as gcc's instead of a report.
    """

    assignment: Assignment
    option: str
    path: Path
    json: Path | None
    html: Path | None
    junit: Path | None
    gradescope: Path | None
    staff: bool
    verbose: bool
    quiet: bool
    for_editors: bool = False

    def write(self, record: Record) -> int:
        """Write the files; the exit code, that of a machine fault where one cannot be written."""
        code, shown = record.exit_code, view(record, staff=self.staff)
        writers: tuple[tuple[Path | None, Callable[[Path], None]], ...] = (
            (self.json, lambda path: write(record, path)),
            (self.html, lambda path: write_text(pages.submission_page(shown, self.assignment.title), path)),
            (self.junit, lambda path: write_text(junit.junit([shown]), path)),
            (self.gradescope, lambda path: write_text(gradescope.results(shown), path)),
        )
        for file, write_to in writers:
            if file is not None:
                try:
                    write_to(file)
                except RecordError as error:
                    click.echo(str(error), err=True)
                    code = max(code, ExitCode.MACHINE_FAULT)
        return code

    def show(self, record: Record) -> None:
        """Print the record, and in a GitHub workflow what that understands."""
        if self.for_editors:
            self._show_lines(record)
        elif not self.quiet and github.is_running(os.environ):
            shown = view(record, staff=self.staff)
            github.show(record, shown, self.path, sys.stdout, os.environ)
        elif not self.quiet:
            console.details(record, sys.stdout, verbose=self.verbose)
            for purpose, command in self._of_one_case(record):
                click.echo(f"{purpose}: {command}")
        click.echo(console.last_line(record.score))

    def _show_lines(self, record: Record) -> None:
        for message in editors.messages(view(record, staff=self.staff).record, self.path):
            click.echo(message)

    def _of_one_case(self, record: Record) -> Iterator[tuple[str, str]]:
        """Commands for the first wrong case: its arrays with a program, and grading it alone.

        The latter is of no use where it alone ran.
        """
        for problem in view(record, staff=self.staff).record.problems:
            ran = [case for case in problem.correctness.cases if case.ending is not Ending.NOT_RUN]
            case, defined = telling_case(problem), self.assignment.problems.get(problem.id)
            if case is None or defined is None:
                continue
            if case.name in {each.name for each in defined.cases(record.seed)}:
                named = ("--assignment", self.option) if self.option else ()
                chosen = (*named, "--problem", problem.id, "--case", case.name, "--seed", str(record.seed))
                if is_reproducible(defined) and self.path.is_dir():
                    folder = ("--submission", str(self.path), "--out", "case")
                    yield "As a program", shlex.join(("grader", "reproduce", *folder, *chosen))
                if len(ran) > 1:
                    yield "One case alone", shlex.join(("grader", "grade", str(self.path), *chosen))
                return

    def show_again(self, new: Record, record: Record, names: Collection[str]) -> None:
        """Print the problems of the files ``names``, which were graded again, and the whole score."""
        if self.for_editors:
            self._show_lines(record)
        elif not self.quiet:
            click.echo(f"\n{', '.join(sorted(names))} saved")
            console.problems(new, sys.stdout, verbose=self.verbose)
        click.echo(console.last_line(record.score))
