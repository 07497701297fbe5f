"""``grader new``: the student template in a new folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from grader.assignments import marker
from grader.assignments.assignment import has_id, load
from grader.assignments.packing import unpack
from grader.assignments.rules import AssignmentError, LanguageName
from grader.cli import options
from grader.cli.arguments import FaultError, load_assignment
from grader.processes.imports import importing
from grader.records.exit_codes import ExitCode
from grader.records.file_names import HANDOUTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grader.assignments.assignment import Assignment

CLUTTER = ("__pycache__", "build", ".*")  # left by working in the template


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@options.assignment
@click.option(
    "--language",
    type=click.Choice(get_args(LanguageName)),
    help="What kernels are to be written in, where the assignment allows it; else the first that it names.",
)
def new(folder: Path, assignment: str | None, language: str | None) -> int:
    """Copy the student template of an assignment to a new FOLDER."""
    chosen = (
        _unpacked(Path(assignment))
        if assignment and assignment.endswith(".zip")
        else load_assignment(assignment)
    )
    language = language or chosen.rules.every_language[0]
    template = chosen.template_in(language)
    if language not in chosen.rules.every_language or not template.is_dir():
        raise FaultError(f"{chosen.id} has no template in {language}.", ExitCode.USAGE)
    unasked = _unasked(chosen)
    copy_folder(chosen.template, folder, unasked)
    try:
        if template != chosen.template:
            ignore = shutil.ignore_patterns(*CLUTTER, *unasked)
            shutil.copytree(template, folder, ignore=ignore, dirs_exist_ok=True)
        if text := next((path for path in handouts(chosen.folder) if path.is_file()), None):
            for path in handouts(folder):
                path.unlink(missing_ok=True)
            shutil.copy(text, folder)
        marker.write(folder, chosen)
    except OSError as error:
        raise FaultError(f"{folder} cannot be written: {error.strerror}.", ExitCode.USAGE) from error
    handout = next((path.name for path in handouts(folder) if path.is_file()), None)
    if unasked and handout and not text:
        click.echo(
            f"{handout} is that of {chosen.bases[0].name}, which has further problems: write your own as "
            f"{chosen.folder / HANDOUTS[1]}.",
            err=True,
        )
    read = f"Read {folder / handout}, write" if handout else "Write"
    # What lies in a folder is graded only for who names it: its code is run as the grader's own.
    option = "" if has_id(chosen) else f" --assignment {chosen.folder}"
    click.echo(f"{read} your kernels, then: grader grade {folder}{option}")
    return ExitCode.OK


def _unpacked(package: Path) -> Assignment:
    """The assignment of a package, which is known by its id from then on."""
    try:
        return unpack(package)
    except AssignmentError as error:
        raise FaultError(str(error), ExitCode.USAGE) from error
    except OSError as error:
        raise FaultError(f"{error.filename or package}: {error.strerror}.", ExitCode.USAGE) from error


def handouts(folder: Path) -> list[Path]:
    """Where the text for students may lie in ``folder``."""
    return [folder / name for name in HANDOUTS]


def _unasked(chosen: Assignment) -> tuple[str, ...]:
    """The files of an inherited template that belong to problems which ``chosen`` leaves out."""
    if chosen.template.is_relative_to(chosen.folder) or not chosen.bases:
        return ()
    base = load(str(chosen.bases[0]))
    ids = {entry.id for entry in chosen.rules.problems}
    if ids >= {entry.id for entry in base.rules.problems}:
        return ()
    with importing():
        from grader.languages.known import files  # noqa: PLC0415 - problems load PyTorch

    def source_files(assignment: Assignment) -> set[str]:
        allowed = assignment.rules.languages_of
        return {
            file for name, problem in assignment.problems.items() for file in files(problem, allowed(name))
        }

    return tuple(sorted(source_files(base) - source_files(chosen)))


def copy_folder(source: Path, folder: Path, unasked: Sequence[str] = ()) -> None:
    """Copy ``source`` without what is ``unasked`` to a new ``folder``, or say why that cannot be."""
    try:
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns(*CLUTTER, *unasked))
    except FileExistsError as error:
        raise FaultError(f"{folder} is there already. Name a folder that is not.", ExitCode.USAGE) from error
    except shutil.Error as error:  # a list of what could not be copied into the new folder
        shutil.rmtree(folder)
        reason = error.args[0][0][2]
        raise FaultError(f"{folder} cannot be written: {reason}.", ExitCode.MACHINE_FAULT) from error
    except OSError as error:
        raise FaultError(f"{folder} cannot be written: {error.strerror}.", ExitCode.USAGE) from error
