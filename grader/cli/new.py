"""``grader new``: the student template in a new folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from grader import template
from grader.cli.arguments import FaultError
from grader.exit_codes import ExitCode


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def new(folder: Path) -> int:
    """Copy the student template to a new FOLDER."""
    try:
        shutil.copytree(template.folder(), folder)
    except FileExistsError as error:
        raise FaultError(f"{folder} is there already. Name a folder that is not.", ExitCode.USAGE) from error
    except shutil.Error as error:  # a list of what could not be copied into the new folder
        shutil.rmtree(folder)
        reason = error.args[0][0][2]
        raise FaultError(f"{folder} cannot be written: {reason}.", ExitCode.MACHINE_FAULT) from error
    except OSError as error:
        raise FaultError(f"{folder} cannot be written: {error.strerror}.", ExitCode.USAGE) from error
    click.echo(f"Read {folder / 'ASSIGNMENT.md'}, write your kernels, then: grader grade {folder}")
    return ExitCode.OK
