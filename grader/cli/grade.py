"""``grader grade``: one submission, once or each time a file of it is saved."""

from __future__ import annotations

import contextlib
import difflib
import secrets
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from grader.cli import options
from grader.cli.arguments import FaultError, check_folders, checked_assignment, given_options, refuse
from grader.cli.options import FILE
from grader.cli.watch import Watch
from grader.processes.imports import importing
from grader.processes.signals import held_back
from grader.processes.threads import take_short_turns
from grader.records.errors import MachineError
from grader.records.exit_codes import ExitCode
from grader.records.record import SEED_BITS, RecordError
from grader.records.record import read as read_record
from grader.records.verdict import Verdict
from grader.submissions.submission import SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grader.cli.outputs import Outputs
    from grader.records.record import Record
    from grader.run.bench import Bench
    from grader.run.grading import GradingRequest
    from grader.run.options import GradingOptions

_SIDE_BY_SIDE = 2  # problems whose cases a line of a terminal has room for
_SPINNER = 3  # columns before it
_WHOLE = ""  # the key of texts about the run as a whole


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@options.assignment
@click.option("--problem", "problems", multiple=True, metavar="ID", help="Only this problem; repeatable.")
@click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="NAME",
    help="Only this case, by the name and with the --seed that a report gives it; repeatable. The other "
    "cases stay undecided.",
)
@options.grading
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
@click.option(
    "--watch",
    is_flag=True,
    help="Stay, and grade the problems of a file again each time it is saved, until Ctrl-C.",
)
@click.option(
    "--fast",
    is_flag=True,
    help=(
        "Begin with the case that failed last time (with --watch, or in the record of --json), go on with a "
        "dozen small ones, then all; end at what is wrong. What was not run stays undecided."
    ),
)
@click.option(
    "--slurm", is_flag=True, help="As a job of a Slurm cluster, from its login node; Ctrl-C cancels the job."
)
@options.of_slurm(minutes=30)
@click.option("--verbose", is_flag=True, help="Print all cases, findings, builds and hints.")
@click.option("--quiet", is_flag=True, help="Print the last line alone.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "gcc"]),
    default="text",
    show_default=True,
    help="Print a report, or a line such as gcc's for each thing to mend, which editors mark in the file.",
)
def grade(
    path: Path,
    assignment: str | None,
    problems: tuple[str, ...],
    cases: tuple[str, ...],
    how: GradingOptions,
    seed: int | None,
    json_path: Path | None,
    html_path: Path | None,
    junit_path: Path | None,
    gradescope_path: Path | None,
    staff: bool,
    profile: bool,
    watch: bool,
    fast: bool,
    slurm: bool,
    partition: str | None,
    account: str | None,
    minutes: int,
    slurm_options: dict[str, str],
    verbose: bool,
    quiet: bool,
    form: str,
) -> int:
    """Grade one submission: a folder or an archive."""
    if not path.exists():
        raise FaultError(f"{path} does not exist. Name the folder or archive to grade.", ExitCode.USAGE)
    if path.is_file() and path.suffix.lower() in SOURCES:
        raise FaultError(
            f"{path} is a single file. Name the folder that holds it: grader grade {path.parent}",
            ExitCode.USAGE,
        )
    if watch and not path.is_dir():
        raise FaultError(f"{path} is an archive. Unpack it, and name the folder to watch.", ExitCode.USAGE)
    if not slurm:
        refuse(given_options() & options.OF_SLURM, "without --slurm. Name that, too.")
    else:
        refuse(given_options() & {"watch", "cases"}, "with --slurm. Leave one of them out.")
    check_folders(json_path, html_path, junit_path, gradescope_path)
    with importing():
        from grader.batch import apart  # noqa: PLC0415 - this takes a second
        from grader.cli.outputs import Outputs  # noqa: PLC0415
        from grader.run.bench import Bench  # noqa: PLC0415
        from grader.run.grading import GradingRequest  # noqa: PLC0415

        chosen = checked_assignment(assignment, problems, path)  # its problems may load PyTorch
    take_short_turns()
    request = GradingRequest(
        path=path,
        assignment=chosen,
        problems=tuple(dict.fromkeys(problems)) or tuple(entry.id for entry in chosen.rules.problems),
        options=how,
        seed=secrets.randbits(SEED_BITS) if seed is None else seed,
        profile=profile,
        fast=fast,
        failed=_failed(_earlier(json_path)) if fast else {},
        cases=cases,
    )
    if cases:
        request = _with_cases(request)
    outputs = Outputs(
        assignment=chosen,
        option=assignment or "",
        path=path,
        json=json_path,
        html=html_path,
        junit=junit_path,
        gradescope=gradescope_path,
        staff=staff,
        verbose=verbose,
        quiet=quiet,
        for_editors=form == "gcc",
    )
    watched = Watch(path) if watch else None
    bench = Bench(remembers=watch)
    if slurm:
        record = _as_job(request, minutes, partition, account, slurm_options, quiet=quiet)
    elif not watch and apart.suits(request):
        record = _shown(partial(apart.grade, request), quiet=quiet)
    else:
        record = _graded(request, bench, quiet=quiet)
    with held_back():
        code = outputs.write(record)
    outputs.show(record)
    if watched and code != ExitCode.INTERRUPTED:
        code = _watch(watched, request, bench, outputs, record)
    return code


def _graded(request: GradingRequest, bench: Bench, *, quiet: bool) -> Record:
    from grader.run.grading import grade as grade_submission  # noqa: PLC0415

    return _shown(lambda progress: grade_submission(request, progress, bench), quiet=quiet)


def _shown(graded: Callable[[Callable[[str], None]], Record], *, quiet: bool) -> Record:
    """The record of a grading that shows what it does."""
    record: Record | None = None
    try:
        with _progress(shown=sys.stderr.isatty() and not quiet) as progress:
            record = graded(progress)
    except KeyboardInterrupt:
        if record is None:
            raise
    return record  # of all, if the interrupt came at the end


def _as_job(
    request: GradingRequest,
    minutes: int,
    partition: str | None,
    account: str | None,
    slurm_options: dict[str, str],
    *,
    quiet: bool,
) -> Record:
    from grader.batch import job  # noqa: PLC0415
    from grader.batch.slurm import cluster  # noqa: PLC0415

    try:
        with _progress(shown=sys.stderr.isatty() and not quiet) as progress:
            return job.grade(request, cluster(1, minutes, partition, account, slurm_options), progress)
    except MachineError as error:
        raise FaultError(str(error), ExitCode.MACHINE_FAULT) from error


def _watch(watched: Watch, request: GradingRequest, bench: Bench, outputs: Outputs, record: Record) -> int:
    """Grade again what is saved, until Ctrl-C; the exit code of the last ``record``."""
    from grader.run.grading import updated  # noqa: PLC0415

    code = record.exit_code
    click.echo(f"watching {request.path} (Ctrl-C ends)", err=True)
    for names in watched.saved():
        touched = _touched(request, names)
        again = replace(request, problems=touched, failed=_failed(record))
        new = _graded(again, bench, quiet=outputs.quiet)
        if new.exit_code == ExitCode.INTERRUPTED:
            break
        record = updated(record, new)
        with held_back():
            code = outputs.write(record)
        outputs.show_again(new, record, names)
    return code


def _with_cases(request: GradingRequest) -> GradingRequest:
    """The request for those of its problems that have the cases.

    Raises:
        FaultError: no problem has a case of one of these names.
    """
    problems = request.assignment.problems
    names = {
        problem: {case.name for case in problems[problem].cases(request.seed)}
        for problem in request.problems
        if problem in problems
    }
    every = set().union(*names.values())
    for case in request.cases:
        if case not in every:
            near = difflib.get_close_matches(case, every, n=1, cutoff=0.0)
            hint = f" The nearest is {near[0]!r}." if near else ""
            raise FaultError(
                f"--case {case}: there is no such case with --seed {request.seed}, from which sizes are "
                f"drawn.{hint}",
                ExitCode.USAGE,
            )
    return replace(request, problems=tuple(name for name in names if names[name] & set(request.cases)))


def _earlier(json_path: Path | None) -> Record | None:
    """The record that an earlier grading left at ``json_path``, if it can be read."""
    try:
        return read_record(json_path) if json_path is not None and json_path.is_file() else None
    except RecordError:
        return None


def _failed(record: Record | None) -> dict[str, list[str]]:
    """The names of the cases that failed, by problem."""
    problems = record.problems if record else []
    return {
        problem.id: [case.name for case in problem.correctness.cases if case.verdict is Verdict.FAIL]
        for problem in problems
    }


def _touched(request: GradingRequest, names: frozenset[str]) -> tuple[str, ...]:
    """The problems that one of the files belongs to; all of them where one may be a header of any."""
    defined = request.assignment.problems
    files = {problem: frozenset(defined[problem].files) for problem in request.problems if problem in defined}
    if names - frozenset().union(*files.values()):
        return request.problems
    return tuple(problem for problem, files_of in files.items() if files_of & names)


@contextlib.contextmanager
def _progress(*, shown: bool) -> Iterator[Callable[[str], None]]:
    """Show the steps that run now, on stderr and only on a terminal."""
    if not shown:
        yield lambda _text: None
        return
    running: dict[str, str] = {}  # the last text of each problem

    def tell(text: str) -> None:
        problem, _, case = text.partition(": case ")
        if case:
            running.pop(_WHOLE, None)
        else:
            running.clear()
            problem = _WHOLE
        running.pop(problem, None)
        running[problem] = text
        line = "; ".join(list(running.values())[-_SIDE_BY_SIDE:])
        status.update(Text(line[: console.width - _SPINNER]))

    console = Console(stderr=True)
    with console.status("collecting") as status:
        yield tell
