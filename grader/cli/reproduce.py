"""``grader reproduce``: one case outside of the grader, as arrays and a program of one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli import options
from grader.cli.arguments import FaultError, checked_assignment
from grader.cli.options import FOLDER, INPUT
from grader.processes.imports import importing
from grader.processes.threads import take_short_turns
from grader.records.exit_codes import ExitCode
from grader.records.record import RecordError
from grader.records.record import read as read_record
from grader.reports.fix_first import telling_case
from grader.reports.views import view

if TYPE_CHECKING:
    from grader.records.record import Record
    from grader.run.reproduction import Reproduction


@click.command()
@click.argument("record", type=INPUT, required=False)
@click.option(
    "--submission",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=".",
    show_default=True,
    help="The folder that was graded.",
)
@options.assignment
@click.option("--problem", metavar="ID", help="The problem; that of RECORD with wrong numbers if not given.")
@click.option("--case", metavar="NAME", help="The case; the one that RECORD's report shows if not given.")
@click.option("--out", type=FOLDER, required=True, help="A new folder, for arrays and program.")
@options.of_grading("device", "sandbox", "memory")
@options.seed
def reproduce(
    record: Path | None,
    submission: Path,
    assignment: str | None,
    problem: str | None,
    case: str | None,
    out: Path,
    device: str,
    sandbox: str,
    memory: str,
    seed: int | None,
) -> int:
    """Take one case out of the grader: its arrays as .npy files, and a program that calls the launcher.

    RECORD is what grade --json wrote. Without it, --problem, --case and --seed have to be given.
    """
    reproduced = of_submission(
        submission,
        problem,
        case,
        seed=seed,
        record=record,
        assignment=assignment,
        device=device,
        sandbox=sandbox,
        memory=memory,
    )
    with importing():
        from grader.run.reproduction import ReproductionError  # noqa: PLC0415

    try:
        names = reproduced.write(out)
    except ReproductionError as error:
        raise FaultError(str(error), ExitCode.USAGE) from error
    click.echo(f"{reproduced.verdict}\nIn {out}: {', '.join(names)}")
    click.echo(f"make -C {out} simulate    runs it on the simulator; the Makefile has more")
    return ExitCode.OK


def of_submission(
    submission: Path | str = ".",
    problem: str | None = None,
    case: str | None = None,
    *,
    seed: int | None = None,
    record: Path | str | None = None,
    assignment: str | None = None,
    device: str = "auto",
    sandbox: str = "auto",
    memory: str = "auto",
) -> Reproduction:
    """Run one case of a submission, and keep its arrays: ``from grader import reproduce`` in a notebook.

    Args:
        submission: its folder.
        problem: id of the problem; that of ``record`` with wrong numbers if None.
        case: its name; the one that the report of ``record`` shows if None.
        seed: of the run; that of ``record`` if None.
        record: what ``grader grade --json`` wrote.
        assignment: id or folder; the one that the folder names if None.
        device: as the option of ``grader grade``.
        sandbox: likewise.
        memory: likewise.

    Raises:
        FaultError: there is no such case, or it cannot be called; the message says what to do.
    """
    with importing():
        from grader.run.reproduction import ReproductionError  # noqa: PLC0415 - this takes a second
        from grader.run.reproduction import reproduce as run  # noqa: PLC0415

    earlier = None if record is None else _read(Path(record))
    if earlier is not None:
        problem, case = _chosen(earlier, problem, case)
        seed = earlier.seed if seed is None else seed
    if problem is None or case is None or seed is None:
        raise FaultError(
            "Name a record of grade --json, or all of --problem, --case and --seed.", ExitCode.USAGE
        )
    folder = Path(submission)
    chosen = checked_assignment(assignment, (problem,), folder)
    take_short_turns()
    try:
        reproduced, new = run(
            folder, chosen, problem, case, seed, device=device, sandbox=sandbox, memory=memory
        )
    except ReproductionError as error:
        raise FaultError(str(error), ExitCode.USAGE) from error
    if earlier is not None and earlier.submission.sha256 != new.submission.sha256:
        click.echo(f"The files in {folder} are no longer those that the record is of.", err=True)
    return reproduced


def _read(path: Path) -> Record:
    try:
        return read_record(path)
    except RecordError as error:
        raise FaultError(str(error), ExitCode.USAGE) from error


def _chosen(record: Record, problem: str | None, case: str | None) -> tuple[str | None, str | None]:
    """Problem and case: those that are named, else the first that the report shows."""
    for result in view(record, staff=False).record.problems:
        telling = telling_case(result)
        if problem in {None, result.id} and (case or telling):
            return result.id, case or (telling.name if telling else None)
    return problem, case
