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
from grader.reports import console, github, gradescope, junit, pages
from grader.reports.fix_first import telling_case
from grader.reports.views import view

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
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
        if not self.quiet and github.is_running(os.environ):
            shown = view(record, staff=self.staff)
            github.show(record, shown, self.path, sys.stdout, os.environ)
        elif not self.quiet:
            console.details(record, sys.stdout, verbose=self.verbose)
            if command := self._one_case(record):
                click.echo(f"One case alone: {command}")
        click.echo(console.last_line(record.score))

    def _one_case(self, record: Record) -> str:
        """The command that runs the first wrong case alone; "" where none is wrong, or several run anyway."""
        for problem in view(record, staff=self.staff).record.problems:
            ran = [case for case in problem.correctness.cases if case.ending is not Ending.NOT_RUN]
            case = telling_case(problem)
            if case is None or len(ran) == 1:
                continue
            if case.name in {each.name for each in self.assignment.problems[problem.id].cases(record.seed)}:
                named = ("--assignment", self.option) if self.option else ()
                chosen = ("--problem", problem.id, "--case", case.name, "--seed", str(record.seed))
                return shlex.join(("grader", "grade", str(self.path), *named, *chosen))
        return ""

    def show_again(self, new: Record, record: Record, names: Collection[str]) -> None:
        """Print the problems of the files ``names``, which were graded again, and the whole score."""
        if not self.quiet:
            click.echo(f"\n{', '.join(sorted(names))} saved")
            console.problems(new, sys.stdout, verbose=self.verbose)
        click.echo(console.last_line(record.score))
