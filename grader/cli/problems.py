"""``grader problems``: what an assignment asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Column, Table

from grader.assignments.assignment import is_installed
from grader.assignments.rules import AssignmentError
from grader.cli import options
from grader.cli.arguments import FaultError, checked_assignment, load_assignment, write_json
from grader.cli.options import FILE
from grader.processes.imports import importing
from grader.records.demands import bound
from grader.records.exit_codes import ExitCode

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@options.assignment
@click.option("--json", "json_path", type=FILE, metavar="FILE", help="Write them to FILE instead.")
def problems(assignment: str | None, json_path: Path | None) -> int:
    """List the problems of an assignment with points and targets."""
    # Tests check the names of installed ones, which students list and need not wait for PyTorch to see.
    chosen = load_assignment(assignment)
    if not is_installed(chosen):
        chosen = checked_assignment(assignment)
        with importing():
            from grader.assignments.cases import of_all  # noqa: PLC0415 - PyTorch takes seconds
            from grader.assignments.names import try_out  # noqa: PLC0415
        try:
            try_out(chosen)
        except AssignmentError as error:
            raise FaultError(str(error), ExitCode.USAGE) from error
        for text in of_all(chosen):
            click.echo(text, err=True)
    if json_path is not None:
        return write_json(chosen.rules.model_dump(mode="json"), json_path)
    names = ("title", "correctness", "performance", "target")
    table = Table(Column("problem", no_wrap=True), *names, title=chosen.title, box=None)
    for problem in chosen.rules.problems:
        host = "" if problem.host_target is None else f", host {problem.host_target:g}x"
        by_name = (*problem.language_targets.items(), *problem.gpu_targets.items())
        targets = "".join(f", {name} {target:g}x" for name, target in by_name)
        steps = "".join(f", {step.points:g} points at {step.at:g}x" for step in problem.steps)
        demands = "".join(
            f", {f'{demand.points:g} points for ' if demand.points else ''}{demand.measure} of "
            f"{bound(demand.most, demand.least)}{', which is required' if demand.required else ''}"
            for demand in problem.demands
        )
        table.add_row(
            problem.id,
            problem.title if problem.graded else f"{problem.title} (not graded in this release)",
            f"{problem.correctness:g}",
            f"{problem.performance:g}",
            f"{problem.target:g}x{host}{targets}{steps}{demands}" if problem.performance else demands[2:],
        )
    Console().print(table)
    return ExitCode.OK
