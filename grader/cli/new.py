"""``grader new``: the student template in a new folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import get_args

import click

from grader.assignments import marker
from grader.assignments.assignment import available
from grader.assignments.rules import LanguageName
from grader.cli import options
from grader.cli.arguments import FaultError, load_assignment
from grader.records.exit_codes import ExitCode

HANDOUTS = ("ASSIGNMENT.md", "HANDOUT.md", "README.md")  # what a template may call its text
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
    chosen = load_assignment(assignment)
    language = language or chosen.rules.every_language[0]
    template = chosen.template_in(language)
    if language not in chosen.rules.every_language or not template.is_dir():
        raise FaultError(f"{chosen.id} has no template in {language}.", ExitCode.USAGE)
    copy_folder(chosen.template, folder)
    try:
        if template != chosen.template:
            shutil.copytree(template, folder, ignore=shutil.ignore_patterns(*CLUTTER), dirs_exist_ok=True)
        marker.write(folder, chosen)
    except OSError as error:
        raise FaultError(f"{folder} cannot be written: {error.strerror}.", ExitCode.USAGE) from error
    handout = next((name for name in HANDOUTS if (folder / name).is_file()), None)
    read = f"Read {folder / handout}, write" if handout else "Write"
    # What lies in a folder is graded only for who names it: its code is run as the grader's own.
    option = "" if chosen.id in available() else f" --assignment {chosen.folder}"
    click.echo(f"{read} your kernels, then: grader grade {folder}{option}")
    return ExitCode.OK


def copy_folder(source: Path, folder: Path) -> None:
    """Copy ``source`` to a new ``folder``, or say why that cannot be."""
    try:
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns(*CLUTTER))
    except FileExistsError as error:
        raise FaultError(f"{folder} is there already. Name a folder that is not.", ExitCode.USAGE) from error
    except shutil.Error as error:  # a list of what could not be copied into the new folder
        shutil.rmtree(folder)
        reason = error.args[0][0][2]
        raise FaultError(f"{folder} cannot be written: {reason}.", ExitCode.MACHINE_FAULT) from error
    except OSError as error:
        raise FaultError(f"{folder} cannot be written: {error.strerror}.", ExitCode.USAGE) from error
