"""Checks of what a user has typed, with the message that says what to type instead."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from grader.assignments.assignment import available, default, load
from grader.assignments.marker import named
from grader.assignments.rules import AssignmentError
from grader.processes.imports import importing
from grader.records.exit_codes import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

    from grader.assignments.assignment import Assignment


class FaultError(click.ClickException):
    """An error that ends a command with an exit code of its own."""

    def __init__(self, message: str, code: ExitCode) -> None:
        super().__init__(message)
        self.code = code


def check_folders(*files: Path | None) -> None:
    """Refuse output files whose folder does not exist, before the long work begins."""
    for file in files:
        if file is not None and not file.parent.is_dir():
            raise FaultError(f"{file.parent} is no folder. Name a file in one that is.", ExitCode.USAGE)


def load_assignment(assignment: str | None, submission: Path | None = None) -> Assignment:
    """The assignment that is asked for, else the one that ``submission`` is for, else the default one."""
    try:
        if assignment is not None:
            return load(assignment)
        return (None if submission is None else named(submission)) or load(default())
    except AssignmentError as error:
        raise FaultError(str(error), ExitCode.USAGE) from error


def checked_assignment(
    assignment: str | None, problem_ids: tuple[str, ...] = (), submission: Path | None = None
) -> Assignment:
    """The assignment of ``load_assignment``, checked: it has these problems, and all that it names exists."""
    with importing():
        from grader.assignments.names import check  # noqa: PLC0415 - PyTorch takes seconds

    chosen = load_assignment(assignment, submission)
    for problem_id in problem_ids:
        try:
            chosen.rules.problem(problem_id)
        except AssignmentError as error:
            raise FaultError(f"{error}{_elsewhere(problem_id)}", ExitCode.USAGE) from error
    try:
        check(chosen)
    except AssignmentError as error:
        raise FaultError(str(error), ExitCode.USAGE) from error
    return chosen


def _elsewhere(problem_id: str) -> str:
    """Which assignment that comes with the grader has a problem, and how to choose it; "" where none has."""
    for name in available():
        if problem_id in (problem.id for problem in load(name).rules.problems):
            return f" {name} has it: add --assignment {name}."
    return ""


def given_options() -> set[str]:
    """The names of the parameters that the command line of the running command holds."""
    context = click.get_current_context()
    command_line = ParameterSource.COMMANDLINE
    return {name for name in context.params if context.get_parameter_source(name) is command_line}


def refuse(useless: set[str], why: str) -> None:
    """Refuse an option that would have no effect."""
    for option in click.get_current_context().command.params:
        if option.name in useless:
            raise FaultError(f"{option.opts[0]} does nothing {why}", ExitCode.USAGE)


def write_json(content: object, path: Path) -> int:
    """Write ``content`` to ``path``; the exit code."""
    try:
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise FaultError(f"{path} cannot be written: {error.strerror}.", ExitCode.USAGE) from error
    return ExitCode.OK
