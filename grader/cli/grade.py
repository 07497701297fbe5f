"""``grader grade``: one submission."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from grader.cli import options
from grader.cli.arguments import FaultError, check_folders, checked_assignment
from grader.cli.options import FILE
from grader.processes.interrupts import importing
from grader.records.exit_codes import ExitCode
from grader.records.record import SEED_BITS, RecordError, write_text
from grader.records.record import write as write_record
from grader.submissions.submission import SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@options.assignment
@click.option("--problem", "problems", multiple=True, metavar="ID", help="Only this problem; repeatable.")
@options.device
@options.sandbox
@options.memory
@options.seed
@click.option("--json", "json_path", type=FILE, metavar="FILE", help="Write the record to FILE.")
@click.option("--html", "html_path", type=FILE, metavar="FILE", help="Write a page for a browser to FILE.")
@options.junit
@options.gradescope
@options.staff
@click.option(
    "--profile",
    is_flag=True,
    help=(
        "When all is decided, say what Nsight Compute counts of the kernels that were timed: bandwidth, "
        "occupancy, what warps wait for. Needs a GPU, ncu and counters that are open to you. Moves no points."
    ),
)
@click.option("--verbose", is_flag=True, help="Print all cases, findings, builds and hints.")
@click.option("--quiet", is_flag=True, help="Print the last line alone.")
def grade(
    path: Path,
    assignment: str | None,
    problems: tuple[str, ...],
    device: str,
    sandbox: str,
    memory: str,
    seed: int | None,
    json_path: Path | None,
    html_path: Path | None,
    junit_path: Path | None,
    gradescope_path: Path | None,
    staff: bool,
    profile: bool,
    verbose: bool,
    quiet: bool,
) -> int:
    """Grade one submission: a folder or a .zip file."""
    if not path.exists():
        raise FaultError(f"{path} does not exist. Name the folder or .zip file to grade.", ExitCode.USAGE)
    if path.is_file() and path.suffix.lower() in SOURCES:
        raise FaultError(
            f"{path} is a single file. Name the folder that holds it: grader grade {path.parent}",
            ExitCode.USAGE,
        )
    check_folders(json_path, html_path, junit_path, gradescope_path)
    with importing():
        from grader.reports import console, github, gradescope, junit, pages  # noqa: PLC0415
        from grader.reports.views import view  # noqa: PLC0415
        from grader.run import grading  # noqa: PLC0415 - PyTorch takes seconds that other commands need not wait

    chosen = checked_assignment(assignment, problems, path)
    request = grading.GradingRequest(
        path=path,
        assignment=chosen,
        problems=tuple(dict.fromkeys(problems)) or tuple(entry.id for entry in chosen.rules.problems),
        device=device,
        sandbox=sandbox,
        memory=memory,
        seed=secrets.randbits(SEED_BITS) if seed is None else seed,
        profile=profile,
    )
    with _progress(shown=sys.stderr.isatty() and not quiet) as progress:
        record = grading.grade(request, progress)
    code, shown = record.exit_code, view(record, staff=staff)
    writers: tuple[tuple[Path | None, Callable[[Path], None]], ...] = (
        (json_path, lambda path: write_record(record, path)),
        (html_path, lambda path: write_text(pages.submission_page(shown, chosen.title), path)),
        (junit_path, lambda path: write_text(junit.junit([shown]), path)),
        (gradescope_path, lambda path: write_text(gradescope.results(shown), path)),
    )
    for file, write in writers:
        if file is not None:
            try:
                write(file)
            except RecordError as error:
                click.echo(str(error), err=True)
                code = max(code, ExitCode.MACHINE_FAULT)
    if not quiet and github.is_running(os.environ):
        github.show(record, shown, path, sys.stdout, os.environ)
    elif not quiet:
        console.details(record, sys.stdout, verbose=verbose)
    click.echo(console.last_line(record.score))
    return code


@contextlib.contextmanager
def _progress(*, shown: bool) -> Iterator[Callable[[str], None]]:
    """What the grader is doing, on stderr and only on a terminal."""
    if not shown:
        yield lambda _text: None
        return
    with Console(stderr=True).status("collecting") as status:
        yield status.update
