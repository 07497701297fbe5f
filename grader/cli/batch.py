"""``grader batch``: every submission of a folder."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli import options
from grader.cli.arguments import FaultError, checked_assignment, given_options, refuse
from grader.processes.imports import importing
from grader.records.errors import MachineError
from grader.records.exit_codes import ExitCode
from grader.records.record import NewerError

if TYPE_CHECKING:
    from grader.run.options import GradingOptions

SHOWN_IGNORED = 10
_NOT_WITH_SLURM = {"shard", "gpus", "regrade"}  # a task has its own part and one GPU


def _shard(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[int, int]:
    number, _, count = (text or "1/1").partition("/")
    if number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
        return int(number), int(count)
    raise click.BadParameter(f"{text!r} is no part of a whole. Name it as 1/4, 2/4, 3/4 or 4/4.")


def _gpus(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    if text is None or ("," in text and text.strip(",")) or (text.isdecimal() and int(text) >= 1):
        return text
    raise click.BadParameter(f"{text!r} is neither a number nor names such as 0,1 (a single one: 1,).")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="DIR",
    help="Where the records, gradebook.csv and index.html go.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Gradings at a time on the sim, builds at a time ahead of GPUs.  [default: all processors]",
)
@click.option(
    "--gpus", callback=_gpus, metavar="N|NAMES", help="How many GPUs to use, or which: 0,1.  [default: all]"
)
@click.option("--force", is_flag=True, help="Grade finished submissions again.")
@click.option("--only", multiple=True, metavar="NAME", help="Only this submission; repeatable.")
@click.option(
    "--regrade",
    type=options.INPUT,
    metavar="CSV",
    help="Grade only what these lines of submission,reason,by,date ask for, each once.",
)
@click.option("--shard", callback=_shard, metavar="I/N", help="Only part I of N, for several machines.")
@click.option("--since", type=click.DateTime(["%Y-%m-%dT%H:%M:%S%z"]), hidden=True)
@click.option("--slurm", type=click.IntRange(min=1), metavar="TASKS", help="As a Slurm array, a GPU each.")
@options.of_slurm(minutes=240)
@options.submitted
@options.assignment
@options.grading
@options.seed
def batch(
    folder: Path,
    out: Path,
    jobs: int | None,
    gpus: str | None,
    force: bool,
    only: tuple[str, ...],
    regrade: Path | None,
    shard: tuple[int, int],
    since: datetime | None,
    slurm: int | None,
    partition: str | None,
    account: str | None,
    minutes: int,
    slurm_options: dict[str, str],
    submitted: Path | None,
    assignment: str | None,
    how: GradingOptions,
    seed: int | None,
) -> int:
    """Grade every submission in FOLDER: sub-folders, archives, and files named as Canvas names them.

    What is finished is kept: the same command again grades only what is new, changed, or failed for a reason
    of the machine.
    """
    if slurm is None:
        refuse(given_options() & options.OF_SLURM, "without --slurm. Name that, too.")
    else:
        refuse(given_options() & _NOT_WITH_SLURM, "with --slurm. Leave one of them out.")
    with importing():
        from grader.batch import batch as batches  # noqa: PLC0415 - takes a second that others need not wait
        from grader.batch import progress  # noqa: PLC0415
        from grader.batch import slurm as clusters  # noqa: PLC0415
        from grader.batch.handed_in import FILE as TIMES  # noqa: PLC0415
        from grader.batch.records import StorageError  # noqa: PLC0415
        from grader.batch.tables import TableError  # noqa: PLC0415

    request = batches.BatchRequest(
        folder=folder,
        out=out,
        assignment=checked_assignment(assignment),
        options=how,
        seed=seed,
        jobs=jobs,
        gpus=gpus,
        since=datetime.now(UTC) if force else since,
        only=only,
        shard=batches.Shard(*shard),
        submitted=submitted,
        regrade=regrade,
    )
    try:
        with progress.shown(sys.stderr) as show:
            if slurm is None:
                outcome = batches.run(request, show)
            else:
                cluster = clusters.cluster(slurm, minutes, partition, account, slurm_options)
                outcome = clusters.run(request, cluster, show)
    except (batches.FolderError, NewerError, TableError) as error:
        raise FaultError(str(error), ExitCode.USAGE) from error
    except (MachineError, StorageError) as error:
        raise FaultError(str(error), ExitCode.MACHINE_FAULT) from error
    if outcome.ignored:
        more = ", ..." if len(outcome.ignored) > SHOWN_IGNORED else ""
        names = ", ".join(outcome.ignored[:SHOWN_IGNORED]) + more
        click.echo(f"ignored, as they are no submission: {names}", err=True)
    for reason in outcome.skipped:
        click.echo(f"not graded: {reason}", err=True)
    for reason in outcome.damaged.values():
        click.echo(f"left out: {reason}", err=True)
    if request.assignment.rules.deadline is not None and not (out / TIMES).is_file():
        click.echo("nothing is taken off for lateness: name the times by --submitted CSV", err=True)
    click.echo("\n".join(batches.closing_lines(outcome)))
    return outcome.exit_code
