"""``grader doctor``: what this machine can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from grader.cli.arguments import write_json
from grader.cli.options import FILE
from grader.processes.imports import importing
from grader.records.exit_codes import ExitCode

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.option("--json", "json_path", type=FILE, metavar="FILE", help="Write the report to FILE instead.")
def doctor(json_path: Path | None) -> int:
    """Say what this machine can do, what is missing, and the command that installs it."""
    with importing():
        from grader.run import doctor as examination  # noqa: PLC0415 - probes load what other commands need not

    diagnosis = examination.examine()
    if json_path is None:
        click.echo(examination.render(diagnosis))
    else:
        write_json(diagnosis.as_json(), json_path)
    return ExitCode.OK if diagnosis.ready else ExitCode.MACHINE_FAULT
