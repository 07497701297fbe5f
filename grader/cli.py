"""The commands, and nothing else: each parses its options, calls one stage, and returns an exit code."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import secrets
import shutil
import signal
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click
from click.core import ParameterSource
from rich.console import Console
from rich.table import Column, Table

from grader import __version__, template
from grader.assignments.assignment import AssignmentError
from grader.assignments.assignment import load as load_assignment
from grader.exit_codes import ExitCode
from grader.interrupts import importing
from grader.judge.appeal import appeals
from grader.reports.escaping import line
from grader.results import SEED_BITS, RecordError, write_text
from grader.results import write as write_record
from grader.submission import SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from _typeshed import ReadableBuffer

    from grader.assignments.assignment import Assignment
    from grader.results import Record

DEFAULT_ASSIGNMENT = "llm_systems_3"
SHOWN_IGNORED = 10
_STDERR = 2
_UNREACHABLE = {errno.EACCES, errno.ENAMETOOLONG}  # why a path that was named cannot even be looked at
_OF_SLURM = {"partition", "account", "minutes", "slurm_options"}
_NOT_WITH_SLURM = {"shard", "gpus"}  # a task has its own part and one GPU

_assignment = click.option(
    "--assignment", default=DEFAULT_ASSIGNMENT, show_default=True, help="Which assignment."
)
_device = click.option(
    "--device", type=click.Choice(["auto", "gpu", "sim"]), default="auto", show_default=True
)
_sandbox = click.option(
    "--sandbox",
    type=click.Choice(["auto", "docker", "bubblewrap", "process"]),
    default="auto",
    show_default=True,
    help="What confines compiling and running.",
)
_memory = click.option(
    "--memory",
    type=click.Choice(["auto", "device", "host"]),
    default="auto",
    show_default=True,
    help="Whether the launchers take device or host pointers.",
)
_seed = click.option(
    "--seed", type=click.IntRange(0, 2**SEED_BITS - 1), help="Repeat the inputs of an earlier run."
)
_file = click.Path(path_type=Path, dir_okay=False)
_folder = click.Path(path_type=Path, file_okay=False)
_input = click.Path(path_type=Path, dir_okay=False, exists=True)
_junit = click.option("--junit", "junit_path", type=_file, metavar="FILE", help="Write JUnit XML to FILE.")
_gradescope = click.option(
    "--gradescope",
    "gradescope_path",
    type=_file,
    metavar="FILE",
    help="Write Gradescope's results.json to FILE.",
)
_staff = click.option("--staff", is_flag=True, help="Show seeds and reasons that are not for students.")


def _shard(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[int, int]:
    number, _, count = (text or "1/1").partition("/")
    if number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
        return int(number), int(count)
    raise click.BadParameter(f"{text!r} is no part of a whole. Name it as 1/4, 2/4, 3/4 or 4/4.")


def _slurm_options(
    _context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    for text in texts:
        if "=" not in text:
            raise click.BadParameter(f"{text!r} has no value. Write it as NAME=VALUE.")
    pairs = {name.lstrip("-"): value for name, _, value in (text.partition("=") for text in texts)}
    if not pairs.get("cpus-per-task", "1").isdecimal():
        raise click.BadParameter("cpus-per-task has to be a number.")
    return pairs


class _FaultError(click.ClickException):
    """An error that ends a command with an exit code of its own."""

    def __init__(self, message: str, code: ExitCode) -> None:
        super().__init__(message)
        self.code = code


def main() -> None:
    """Run a command; Ctrl-C and SIGTERM end any of them with 130, and what nobody foresaw with 4."""
    _open_standard_streams()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores a lost terminal
            signal.signal(number, signal.default_int_handler)
    try:
        code = commands.main(prog_name="grader", standalone_mode=False)
        sys.stdout.flush()
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        code = ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show()
        code = error.code if isinstance(error, _FaultError) else ExitCode.USAGE
    except Exception as error:  # noqa: BLE001 - the one place that tells a bug of the grader from lost points
        if isinstance(error, OSError) and error.errno in _UNREACHABLE and error.filename:
            click.echo(f"Error: {error.filename}: {error.strerror}.", err=True)
            code = ExitCode.USAGE
        else:
            traceback.print_exc()
            click.echo(
                "This is a bug in the grader, not in the submission. Please report the lines above.", err=True
            )
            code = ExitCode.GRADER_BUG
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is written: no traceback of the way out
    sys.exit(code)


def _open_standard_streams() -> None:
    """Let those that are closed, as daemons have them, lead nowhere: a file would take their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, number)
            if nowhere != number:
                os.close(nowhere)
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115
    sys.stdout, sys.stderr = _told(sys.stdout), _told(sys.stderr)


def _told(stream: TextIO) -> TextIO:
    buffer = io.BufferedWriter(_Told(stream.fileno(), "w", closefd=False))
    # A name that the terminal's encoding lacks is shown in escapes; it must not cost the last line.
    errors = "backslashreplace" if stream.errors == "strict" else stream.errors
    return io.TextIOWrapper(buffer, stream.encoding, errors, line_buffering=bool(stream.line_buffering))


class _Told(io.FileIO):
    """Standard output or error. A reader who has seen enough (``| head -1``) is no fault; a full disk is."""

    _lost = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write it, or drop it where nobody reads any more."""
        size = memoryview(data).nbytes
        if self._lost:
            return size
        try:
            return super().write(data)
        except OSError as error:
            self._lost = True
            if isinstance(error, BrokenPipeError) or self.fileno() == _STDERR:
                return size
            raise _FaultError(
                f"standard output cannot be written to: {error.strerror}.", ExitCode.MACHINE_FAULT
            ) from error


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="grader")
def commands() -> None:
    """Grade CUDA kernels: whether they are right, on any machine, and whether they are fast, on a GPU."""


@commands.command()
@click.argument("path", type=click.Path(path_type=Path))
@_assignment
@click.option("--problem", "problems", multiple=True, metavar="ID", help="Only this problem; repeatable.")
@_device
@_sandbox
@_memory
@_seed
@click.option("--json", "json_path", type=_file, metavar="FILE", help="Write the record to FILE.")
@click.option("--html", "html_path", type=_file, metavar="FILE", help="Write a page for a browser to FILE.")
@_junit
@_gradescope
@_staff
@click.option(
    "--profile",
    is_flag=True,
    help=(
        "When all is decided, say what Nsight Compute counts of the kernels that were timed: bandwidth, "
        "occupancy, what warps wait for. Needs a GPU, ncu and counters that are open to you. Moves no points."
    ),
)
@click.option("--quiet", is_flag=True, help="Print the last line alone.")
def grade(
    path: Path,
    assignment: str,
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
    quiet: bool,
) -> int:
    """Grade one submission: a folder or a .zip file."""
    with importing():
        from grader import grading  # noqa: PLC0415 - PyTorch takes seconds that other commands need not wait
        from grader.reports import console, github, gradescope, junit, pages  # noqa: PLC0415
        from grader.reports.views import view  # noqa: PLC0415

    if not path.exists():
        raise _FaultError(f"{path} does not exist. Name the folder or .zip file to grade.", ExitCode.USAGE)
    if path.is_file() and path.suffix.lower() in SOURCES:
        raise _FaultError(
            f"{path} is a single file. Name the folder that holds it: grader grade {path.parent}",
            ExitCode.USAGE,
        )
    chosen = _checked(assignment, problems)
    _check_places(json_path, html_path, junit_path, gradescope_path)
    request = grading.Request(
        path=path,
        assignment=chosen,
        problems=tuple(dict.fromkeys(problems)) or tuple(problem.id for problem in chosen.problems),
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
        console.details(record, sys.stdout)
    click.echo(console.last_line(record.score))
    return code


@commands.command()
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
    "--gpus", type=click.IntRange(min=1), default=1, show_default=True, help="How many GPUs to use."
)
@click.option("--force", is_flag=True, help="Grade finished submissions again.")
@click.option("--only", multiple=True, metavar="NAME", help="Only this submission; repeatable.")
@click.option("--shard", callback=_shard, metavar="I/N", help="Only part I of N, for several machines.")
@click.option("--since", type=click.DateTime(["%Y-%m-%dT%H:%M:%S%z"]), hidden=True)
@click.option("--slurm", type=click.IntRange(min=1), metavar="TASKS", help="As a Slurm array, a GPU each.")
@click.option("--partition", metavar="NAME", help="Of the Slurm cluster.")
@click.option("--account", metavar="NAME", help="That Slurm charges.")
@click.option(
    "--time",
    "minutes",
    type=click.IntRange(min=1),
    default=240,
    show_default=True,
    help="Minutes that a Slurm task may take.",
)
@click.option(
    "--slurm-option",
    "slurm_options",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_slurm_options,
    help="Of sbatch, such as constraint=a100; repeatable.",
)
@_assignment
@_device
@_sandbox
@_memory
@_seed
def batch(
    folder: Path,
    out: Path,
    jobs: int | None,
    gpus: int,
    force: bool,
    only: tuple[str, ...],
    shard: tuple[int, int],
    since: datetime | None,
    slurm: int | None,
    partition: str | None,
    account: str | None,
    minutes: int,
    slurm_options: dict[str, str],
    assignment: str,
    device: str,
    sandbox: str,
    memory: str,
    seed: int | None,
) -> int:
    """Grade every submission in FOLDER: sub-folders, .zip files, and files named as Canvas names them.

    What is finished is kept: the same command again grades only what is new, changed, or failed for a reason
    of the machine.
    """
    with importing():
        from grader.batch import batch as batches  # noqa: PLC0415 - takes a second that others need not wait
        from grader.batch import progress  # noqa: PLC0415
        from grader.batch import slurm as clusters  # noqa: PLC0415
        from grader.batch.records import StorageError  # noqa: PLC0415

    if slurm is None:
        _refuse(_given() & _OF_SLURM, "without --slurm. Name that, too.")
    else:
        _refuse(_given() & _NOT_WITH_SLURM, "with --slurm. Leave one of them out.")
    request = batches.Request(
        folder=folder,
        out=out,
        assignment=_checked(assignment, ()),
        device=device,
        sandbox=sandbox,
        memory=memory,
        seed=seed,
        jobs=jobs,
        gpus=gpus,
        since=datetime.now(UTC) if force else since,
        only=only,
        shard=batches.Shard(*shard),
    )
    try:
        with progress.shown(sys.stderr) as show:
            if slurm is None:
                outcome = batches.run(request, show)
            else:
                options = {name: value for name, value in slurm_options.items() if name != "cpus-per-task"}
                processors = int(slurm_options.get("cpus-per-task", clusters.PROCESSORS))
                cluster = clusters.Cluster(slurm, minutes, processors, partition, account, options)
                outcome = clusters.run(request, cluster, show)
    except batches.FolderError as error:
        raise _FaultError(str(error), ExitCode.USAGE) from error
    except (batches.MachineError, StorageError) as error:
        raise _FaultError(str(error), ExitCode.MACHINE_FAULT) from error
    if outcome.ignored:
        more = ", ..." if len(outcome.ignored) > SHOWN_IGNORED else ""
        names = ", ".join(outcome.ignored[:SHOWN_IGNORED]) + more
        click.echo(f"ignored, as they are no submission: {names}", err=True)
    for reason in outcome.skipped:
        click.echo(f"not graded: {reason}", err=True)
    click.echo("\n".join(batches.closing_lines(outcome)))
    return outcome.exit_code


@commands.command()
@click.argument("path", metavar="DIR", type=click.Path(path_type=Path, exists=True))
@click.option("--html", type=_folder, metavar="DIR", help="Write the pages to another folder.")
@_junit
@_gradescope
@click.option(
    "--canvas",
    type=_input,
    metavar="EXPORT.csv",
    help="Fill the scores into a gradebook that Canvas exported; the result is DIR/canvas.csv.",
)
@click.option("--column", metavar="TITLE", help="Which assignment of EXPORT.csv, if it has several.")
@click.option("--moodle", type=_file, metavar="FILE", help="Write grades for Moodle's CSV import to FILE.")
@click.option(
    "--roster", type=_input, metavar="CSV", help="An export of Moodle with its users, for --moodle."
)
@click.option("--aliases", type=_input, metavar="CSV", help="Lines of SUBMISSION,ALIAS for the speed board.")
@click.option("--jplag", type=_folder, metavar="OUT", help="Write sources that JPlag compares to OUT.")
@click.option("--submissions", type=_folder, metavar="FOLDER", help="What was graded, for --jplag.")
@click.option("--appeal", is_flag=True, help="Only decide the speeds again, from the raw times.")
@_staff
def report(
    path: Path,
    html: Path | None,
    junit_path: Path | None,
    gradescope_path: Path | None,
    canvas: Path | None,
    column: str | None,
    moodle: Path | None,
    roster: Path | None,
    aliases: Path | None,
    jplag: Path | None,
    submissions: Path | None,
    appeal: bool,
    staff: bool,
) -> int:
    """Make reports again from the records in DIR, or from one record, and run nothing.

    Without options, the pages and the gradebook in DIR are made anew. A record that cannot be read is named
    and left out, and the exit code is 3.
    """
    with importing():
        from grader.reports import request as reports  # noqa: PLC0415 - templates take time to load
        from grader.reports.folder import RECORD, read_records  # noqa: PLC0415

    if appeal:
        _refuse(
            _given() - {"path", "appeal"}, "with --appeal, which writes no report. Leave one of them out."
        )
    if (path / RECORD).is_file():
        path /= RECORD
    _check_places(junit_path, gradescope_path, moodle)
    try:
        records, damaged = read_records(path)
    except RecordError as error:
        raise _FaultError(str(error), ExitCode.USAGE) from error
    for reason in damaged.values():
        click.echo(f"left out: {reason}", err=True)
    code = ExitCode.MACHINE_FAULT if damaged else ExitCode.OK
    if appeal:
        _appeal(records)
        return code
    asked = reports.Request(
        records,
        place=path,
        title=_title(next(iter(records.values())).assignment),
        damaged=damaged,
        staff=staff,
        html=html,
        junit=junit_path,
        gradescope=gradescope_path,
        canvas=canvas,
        column=column,
        moodle=moodle,
        roster=roster,
        aliases=aliases,
        jplag=jplag,
        submissions=submissions,
    )
    try:
        for told in reports.run(asked):
            click.echo(told)
    except reports.RequestError as error:
        raise _FaultError(str(error), ExitCode.USAGE) from error
    except RecordError as error:
        raise _FaultError(str(error), ExitCode.MACHINE_FAULT) from error
    return code


@commands.command()
@click.argument("folder", type=click.Path(path_type=Path))
def new(folder: Path) -> int:
    """Copy the student template to a new FOLDER."""
    try:
        shutil.copytree(template.folder(), folder)
    except FileExistsError as error:
        raise _FaultError(f"{folder} is there already. Name a folder that is not.", ExitCode.USAGE) from error
    except shutil.Error as error:  # a list of what could not be copied into the new folder
        shutil.rmtree(folder)
        reason = error.args[0][0][2]
        raise _FaultError(f"{folder} cannot be written: {reason}.", ExitCode.MACHINE_FAULT) from error
    except OSError as error:
        raise _FaultError(f"{folder} cannot be written: {error.strerror}.", ExitCode.USAGE) from error
    click.echo(f"Read {folder / 'ASSIGNMENT.md'}, write your kernels, then: grader grade {folder}")
    return ExitCode.OK


@commands.command()
@_assignment
@click.option("--json", "json_path", type=_file, metavar="FILE", help="Write them to FILE instead.")
def problems(assignment: str, json_path: Path | None) -> int:
    """List the problems of an assignment with points and targets."""
    # Tests check the names of the default one, which students list and need not wait for PyTorch to see.
    chosen = _load(assignment, ()) if assignment == DEFAULT_ASSIGNMENT else _checked(assignment, ())
    if json_path is not None:
        return _write_json(chosen.model_dump(), json_path)
    names = ("title", "correctness", "performance", "target")
    table = Table(Column("problem", no_wrap=True), *names, title=chosen.title, box=None)
    for problem in chosen.problems:
        host = "" if problem.host_target is None else f", host {problem.host_target:g}x"
        table.add_row(
            problem.id,
            problem.title if problem.graded else f"{problem.title} (not graded in this release)",
            f"{problem.correctness:g}",
            f"{problem.performance:g}",
            f"{problem.target:g}x{host}",
        )
    Console().print(table)
    return ExitCode.OK


@commands.command()
@click.option("--json", "json_path", type=_file, metavar="FILE", help="Write the report to FILE instead.")
def doctor(json_path: Path | None) -> int:
    """Say what this machine can do, what is missing, and the command that installs it."""
    with importing():
        from grader import doctor as examination  # noqa: PLC0415 - probes load what other commands need not

    diagnosis = examination.examine()
    if json_path is None:
        click.echo(examination.render(diagnosis))
    else:
        _write_json(diagnosis.as_json(), json_path)
    return ExitCode.OK if diagnosis.ready else ExitCode.MACHINE_FAULT


@commands.command(context_settings={"ignore_unknown_options": True})
@click.option("--json", "json_path", type=_file, metavar="FILE", help="Write the findings to FILE.")
@click.option("--leak-check", is_flag=True, help="Report device memory that is not freed at exit.")
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    metavar="N",
    help="Warp instructions that one kernel may run before it counts as hung; 1,000,000,000 if not given.",
)
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def simulate(program: tuple[str, ...], json_path: Path | None, leak_check: bool, budget: int | None) -> int:
    """Run a PROGRAM built by nvcc with -cudart shared on the simulator and print what its checks find."""
    with importing():
        from grader.devices.device import DeviceError  # noqa: PLC0415
        from grader.simulator.simulate import simulate as run  # noqa: PLC0415

    _check_places(json_path)
    try:
        return run(program, json_path=json_path, leak_check=leak_check, budget=budget)
    except DeviceError as error:
        raise _FaultError(str(error), ExitCode.MACHINE_FAULT) from error


def _check_places(*files: Path | None) -> None:
    """Refuse files that cannot be written before what they are for takes its time."""
    for file in files:
        if file is not None and not file.parent.is_dir():
            raise _FaultError(f"{file.parent} is no folder. Name a file in one that is.", ExitCode.USAGE)


def _load(assignment: str, problem_ids: tuple[str, ...]) -> Assignment:
    try:
        chosen = load_assignment(assignment)
        for problem_id in problem_ids:
            chosen.problem(problem_id)
    except AssignmentError as error:
        raise _FaultError(str(error), ExitCode.USAGE) from error
    return chosen


def _checked(assignment: str, problem_ids: tuple[str, ...]) -> Assignment:
    """The assignment, if all that it names can be graded."""
    with importing():
        from grader.assignments.names import check  # noqa: PLC0415 - PyTorch takes seconds

    chosen = _load(assignment, problem_ids)
    try:
        check(chosen)
    except AssignmentError as error:
        raise _FaultError(str(error), ExitCode.USAGE) from error
    return chosen


def _given() -> set[str]:
    """The names of the parameters that the command line of the running command holds."""
    context = click.get_current_context()
    command_line = ParameterSource.COMMANDLINE
    return {name for name in context.params if context.get_parameter_source(name) is command_line}


def _refuse(useless: set[str], why: str) -> None:
    """Refuse the first of parameters that would do nothing, as it is written."""
    for option in click.get_current_context().command.params:
        if option.name in useless:
            raise _FaultError(f"{option.opts[0]} does nothing {why}", ExitCode.USAGE)


def _appeal(records: Mapping[str, Record]) -> None:
    """Tell what the raw times in ``records`` say; a fault if a record says something else."""
    doubtful = []
    for name, record in records.items():
        found = list(appeals(record))
        click.echo(f"{line(name)}{'' if found else ': no speed was measured'}")
        for one in found:
            click.echo("\n".join(one.lines))
        if not all(one.upheld for one in found):
            doubtful.append(line(name))
    if doubtful:
        raise _FaultError(
            f"{', '.join(doubtful)}: a record is not what its own raw times say. It was changed after "
            "grading, or another version of the grader wrote it: grade again.",
            ExitCode.USAGE,
        )


def _title(assignment: str) -> str:
    """What an assignment is called; a record may be of one that this grader does not have."""
    try:
        return load_assignment(assignment).title
    except AssignmentError:
        return assignment


def _write_json(content: object, path: Path) -> int:
    try:
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise _FaultError(f"{path} cannot be written: {error.strerror}.", ExitCode.USAGE) from error
    return ExitCode.OK


@contextlib.contextmanager
def _progress(*, shown: bool) -> Iterator[Callable[[str], None]]:
    """What the grader is doing, on stderr and only on a terminal."""
    if not shown:
        yield lambda _text: None
        return
    with Console(stderr=True).status("collecting") as status:
        yield status.update
