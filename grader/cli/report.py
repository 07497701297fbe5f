"""``grader report``: reports again from records, running nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.assignments.assignment import available, load
from grader.cli import options
from grader.cli.arguments import FaultError, check_folders, given_options, load_assignment, refuse
from grader.cli.options import FILE, FOLDER, INPUT
from grader.judge.timing.appeal import appeals
from grader.processes.imports import importing
from grader.records.exit_codes import ExitCode
from grader.records.record import RecordError
from grader.reports.escaping import line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grader.batch.handed_in import Settled
    from grader.records.record import Record


@click.command()
@click.argument("path", metavar="DIR", type=click.Path(path_type=Path, exists=True))
@click.option("--html", type=FOLDER, metavar="DIR", help="Write the pages to another folder.")
@options.junit
@options.gradescope
@click.option(
    "--canvas",
    type=INPUT,
    metavar="EXPORT.csv",
    help="Fill the scores into a gradebook that Canvas exported; the result is DIR/canvas.csv.",
)
@click.option("--column", metavar="TITLE", help="Which assignment of EXPORT.csv, if it has several.")
@click.option("--moodle", type=FILE, metavar="FILE", help="Write grades for Moodle's CSV import to FILE.")
@click.option("--roster", type=INPUT, metavar="CSV", help="An export of Moodle with its users.")
@click.option(
    "--feedback-zip",
    "feedback",
    type=FILE,
    metavar="FILE",
    help="Write the pages of students to FILE, as Moodle and Canvas take feedback in bulk.",
)
@click.option("--scale", is_flag=True, help="Scale scores to the points of that column, or that roster's.")
@click.option("--aliases", type=INPUT, metavar="CSV", help="Lines of SUBMISSION,ALIAS for the speed board.")
@click.option(
    "--leaderboard", type=FILE, metavar="FILE", help="Write a page of speeds by alias, of those in --aliases."
)
@click.option("--jplag", type=FOLDER, metavar="OUT", help="Write sources that JPlag compares to OUT.")
@click.option(
    "--submissions",
    type=FOLDER,
    metavar="FOLDER",
    help="What was graded, for --jplag, or for the names of Canvas in --feedback-zip.",
)
@click.option("--appeal", is_flag=True, help="Only decide the speeds again, from the raw times.")
@options.staff
@options.submitted
@options.assignment
def report(
    path: Path,
    html: Path | None,
    junit_path: Path | None,
    gradescope_path: Path | None,
    canvas: Path | None,
    column: str | None,
    moodle: Path | None,
    roster: Path | None,
    feedback: Path | None,
    scale: bool,
    aliases: Path | None,
    leaderboard: Path | None,
    jplag: Path | None,
    submissions: Path | None,
    appeal: bool,
    staff: bool,
    submitted: Path | None,
    assignment: str | None,
) -> int:
    """Make reports again from the records in DIR, or from one record, and run nothing.

    Without options, the pages and the gradebook in DIR are made anew. A record that cannot be read is named
    and left out, and the exit code is 3.
    """
    with importing():
        from grader.reports import request as reports  # noqa: PLC0415 - templates take time to load
        from grader.reports.folder import RECORD, read_records  # noqa: PLC0415

    if appeal:
        refuse(
            given_options() - {"path", "appeal"},
            "with --appeal, which writes no report. Leave one of them out.",
        )
    if (path / RECORD).is_file():
        path /= RECORD
    check_folders(junit_path, gradescope_path, moodle, leaderboard, feedback)
    try:
        records, damaged = read_records(path)
    except RecordError as error:
        raise FaultError(str(error), ExitCode.USAGE) from error
    for reason in damaged.values():
        click.echo(f"left out: {reason}", err=True)
    code = ExitCode.MACHINE_FAULT if damaged else ExitCode.OK
    if appeal:
        _appeal(records)
        return code
    shown = _settled(path, {**records, **dict.fromkeys(damaged)}, assignment, submitted)
    request = reports.ReportRequest(
        {name: record for name, record in shown.results.items() if record},
        path=path,
        title=_title(assignment, next(iter(records.values())).assignment),
        superseded=shown.superseded,
        students=shown.students,
        damaged=damaged,
        staff=staff,
        html=html,
        junit=junit_path,
        gradescope=gradescope_path,
        canvas=canvas,
        column=column,
        moodle=moodle,
        roster=roster,
        scale=scale,
        aliases=aliases,
        leaderboard=leaderboard,
        feedback=feedback,
        jplag=jplag,
        submissions=submissions,
    )
    try:
        for message in reports.run(request):
            click.echo(message)
    except reports.RequestError as error:
        raise FaultError(str(error), ExitCode.USAGE) from error
    except RecordError as error:
        raise FaultError(str(error), ExitCode.MACHINE_FAULT) from error
    return code


def _settled(
    path: Path, results: Mapping[str, Record | None], assignment: str | None, table: Path | None
) -> Settled:
    """The records of a batch after lateness, of several of a student the one that counts; one as it is."""
    with importing():
        from grader.batch import by_hand, handed_in, regrade, teams  # noqa: PLC0415
        from grader.batch.tables import TableError  # noqa: PLC0415

    if table is not None and (assignment is None or path.is_file()):
        raise FaultError(
            "--submitted needs the folder of a batch, and --assignment, which says what lateness costs.",
            ExitCode.USAGE,
        )
    if path.is_file():
        return handed_in.Settled(results)
    try:
        points, groups, regraded = by_hand.read(path), teams.read(path), regrade.read(path)
        for reason in points.unknown(results):
            click.echo(reason, err=True)
        if assignment is None:
            return handed_in.settled(results, handed_in.kept(path), points, groups, regraded)
        times = handed_in.renew(path, load_assignment(assignment).rules, table)
        return handed_in.settled(results, times, points, groups, regraded)
    except TableError as error:
        raise FaultError(str(error), ExitCode.USAGE) from error
    except RecordError as error:
        raise FaultError(str(error), ExitCode.MACHINE_FAULT) from error


def _appeal(records: Mapping[str, Record]) -> None:
    """Decide the speeds again from the raw times in ``records``; fail if a record says something else."""
    doubtful = []
    for name, record in records.items():
        decisions = list(appeals(record))
        click.echo(f"{line(name)}{'' if decisions else ': no speed was measured'}")
        for decision in decisions:
            click.echo("\n".join(decision.lines))
        if not all(decision.upheld for decision in decisions):
            doubtful.append(line(name))
    if doubtful:
        raise FaultError(
            f"{', '.join(doubtful)}: a record is not what its own raw times say. It was changed after "
            "grading, or another version of the grader wrote it: grade again.",
            ExitCode.USAGE,
        )


def _title(name: str | None, recorded: str) -> str:
    """The title of the assignment ``name``; without a name, that of the installed one of the records.

    Records may be of one that this grader does not have.
    """
    if name is not None:
        return load_assignment(name).title
    return load(recorded).title if recorded in available() else recorded
