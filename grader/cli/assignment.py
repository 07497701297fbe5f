"""``grader assignment``: whether a teacher's own assignment is sound."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape

from grader.assignments.assignment import EXAMPLE, EXAMPLE_PROGRAM
from grader.assignments.rules import AssignmentError, nearest
from grader.cli import options
from grader.cli.arguments import FaultError, check_folders, checked_assignment, load_assignment
from grader.cli.new import copy_folder
from grader.cli.options import FILE
from grader.processes.imports import importing
from grader.records.errors import MachineError
from grader.records.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grader.assignments.assignment import Assignment

QUIET_SECONDS = 30.0
"""How long nothing is said of the steps where they are not shown on a terminal."""

named = click.argument("name", metavar="FOLDER|ID")


@click.group()
def assignment() -> None:
    """Whether an assignment is sound: that right kernels pass it, and wrong ones do not."""


@assignment.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--program",
    is_flag=True,
    help="One whose problem is a whole program, with a folder of inputs and outputs.",
)
def new(folder: Path, *, program: bool) -> int:
    """Copy a complete small assignment to a new folder DIR, to begin your own with."""
    copy_folder(EXAMPLE_PROGRAM if program else EXAMPLE, folder)
    click.echo(
        f"Change the files in {folder}; their first lines say how. Then: grader assignment check {folder}"
    )
    return ExitCode.OK


@assignment.command()
@named
@click.option(
    "--out",
    metavar="FILE.zip",
    type=FILE,
    help="The package; else the assignment's id with .zip, here.",
)
def pack(name: str, out: Path | None) -> int:
    """Make the package of an assignment for students.

    It holds rules, problems, templates and the handout, but neither reference nor mutants nor variants.
    """
    with importing():
        from grader.assignments import packing  # noqa: PLC0415 - hashing loads NumPy

    check_folders(out)
    chosen = checked_assignment(name)
    out = out or Path(f"{chosen.id}.zip")
    try:
        packing.pack(chosen, out)
    except AssignmentError as error:
        raise FaultError(str(error), ExitCode.USAGE) from error
    except OSError as error:
        raise FaultError(f"{error.filename or out}: {error.strerror}.", ExitCode.USAGE) from error
    click.echo(
        f"wrote {out}, version {packing.version(chosen)}. Students begin with: grader new hw --assignment "
        f"{out.name}"
    )
    for problem, folder in packing.shown_cases(chosen):
        click.echo(
            f"note: students can read the expected output of {problem}: the package has the folder {folder}"
        )
    return ExitCode.OK


@assignment.command("import")
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path, exists=True))
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The new folder of the assignment; else FOLDER's name with _assignment, here.",
)
def import_(folder: Path, out: Path | None) -> int:
    """Make an assignment of problems in another project's form.

    FOLDER is a problem of the GPU MODE form (task.yml, reference.py) or of the LeetGPU form (challenge.py),
    or a file of the KernelBench form (class Model), or holds such folders and files. Its Python files are
    run. The exit code is 1 where a problem could not be imported.
    """
    with importing():
        from grader.importers import folders  # noqa: PLC0415 - PyTorch takes seconds

    out = out or Path(f"{folder.resolve().name.removesuffix('.py')}_assignment")
    try:
        report = folders.imported(folder, out)
    except folders.ImportFaultError as error:
        raise FaultError(str(error), ExitCode.USAGE) from error
    except OSError as error:
        raise FaultError(f"{out} cannot be written: {error.strerror}.", ExitCode.USAGE) from error
    for line in report.lines:
        click.echo(line)
    click.echo(
        f"Read {out}, put right answers in {out}/reference_triton, then: grader assignment check {out}"
    )
    return ExitCode.POINTS_LOST if report.refused else ExitCode.OK


@assignment.command()
@named
@click.option("--problem", "problems", multiple=True, metavar="ID", help="Only this problem; repeatable.")
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many seeds the reference is graded with.",
)
@click.option(
    "--json", "json_path", type=FILE, metavar="FILE", help="Keep results here, and go on from what it holds."
)
@options.of_grading("device", "sandbox")
def check(
    name: str, problems: tuple[str, ...], seeds: int, json_path: Path | None, device: str, sandbox: str
) -> int:
    """Whether an assignment is sound, as a table.

    The reference must earn full marks and the template nothing, variants must pass and mutants fail, the
    unfused baseline must be right, and on a GPU the targets must be in reach. The exit code is 1 where
    something is not as it must be.
    """
    with importing():
        from grader.soundness.check import check as rows  # noqa: PLC0415 - PyTorch takes seconds

    check_folders(json_path)
    chosen = load_assignment(name)
    selected = _selected(chosen, problems)
    if problems:
        chosen = replace(chosen, only=frozenset(selected))
    marks = {True: "ok", False: "!!", None: "--"}
    sound = True
    with _faults(), _progress() as progress:
        for row in rows(
            chosen,
            selected,
            seeds=seeds,
            device=device,
            sandbox=sandbox,
            progress=progress,
            path=json_path,
        ):
            click.echo(f"{marks[row.sound]}  {row.title:36}  {row.text}")
            sound = sound and row.sound is not False
    click.echo("Sound, as far as it could be seen here." if sound else "Not sound: see what is marked !!")
    return ExitCode.OK if sound else ExitCode.POINTS_LOST


@assignment.command()
@named
@click.option(
    "--only",
    multiple=True,
    metavar="WORD",
    help="Only mutants with WORD in their place, operator or key; repeatable.",
)
@click.option(
    "--tiers", is_flag=True, help="Mutants that are right outside of a drawn interval of sizes or counts."
)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most N mutants of each file, or N tiers of each right kernel.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Draws the sample, and tiers.")
@click.option(
    "--seconds", type=click.FloatRange(min=0), default=float("inf"), help="Begin no further mutants then."
)
@click.option(
    "--json", "json_path", type=FILE, metavar="FILE", help="Keep results here, and go on from what it holds."
)
@options.of_grading("sandbox")
def mutate(
    name: str,
    only: tuple[str, ...],
    *,
    tiers: bool,
    sample: int | None,
    seed: int,
    seconds: float,
    json_path: Path | None,
    sandbox: str,
) -> int:
    """Which automatic mutants of an assignment's right kernels survive its cases.

    Changes the reference and the variants in one place at a time, and judges each change on the simulator.
    The exit code is 1 where one survives that mutants/survivors.toml of the assignment does not explain, or
    with --tiers more than one in a hundred.
    """
    check_folders(json_path)
    with importing():
        from grader.soundness import mutation_report  # noqa: PLC0415 - PyTorch takes seconds
        from grader.soundness.kernels import right_kernels, right_programs  # noqa: PLC0415
        from grader.soundness.mutants import mutants  # noqa: PLC0415
        from grader.soundness.mutate import Plan  # noqa: PLC0415
        from grader.soundness.mutate import mutate as judge  # noqa: PLC0415
        from grader.soundness.survivors import explained  # noqa: PLC0415

    chosen = checked_assignment(name)
    plan = Plan(only, sample, seed, seconds, json_path, sandbox, tiers)
    with _faults(), _progress() as progress:
        survivors = explained(chosen)
        judgements = judge(chosen, plan, progress)
        right = (*right_kernels(chosen), *right_programs(chosen))
        gone = survivors.keys() - {mutant.key for mutant in mutants(right)}
    for key in sorted(gone):
        click.echo(f"explained, but no mutant any more: {key}, {survivors[key].edit}", err=True)
    click.echo(mutation_report.report(judgements, survivors))
    return ExitCode.OK if mutation_report.sound(judgements, survivors) else ExitCode.POINTS_LOST


def _selected(chosen: Assignment, problems: tuple[str, ...]) -> list[str]:
    """The ids of ``problems`` in the assignment's order; all graded ones if there are none."""
    graded = [entry.id for entry in chosen.rules.problems if entry.graded]
    for name in problems:
        if name not in graded:
            message = f"{chosen.id} has no graded problem {name!r}.{nearest(name, graded)}"
            raise FaultError(message, ExitCode.USAGE)
    return [name for name in graded if name in problems] or graded


@contextmanager
def _faults() -> Iterator[None]:
    """Turn what the assignment or the machine did into a message and an exit code."""
    try:
        yield
    except AssignmentError as error:
        raise FaultError(str(error), ExitCode.USAGE) from error
    except MachineError as error:
        raise FaultError(str(error), ExitCode.MACHINE_FAULT) from error


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Show the step that runs now, on stderr: elsewhere than on a terminal a line now and then."""
    begun = told = time.monotonic()

    def passed() -> str:
        minutes, seconds = divmod(int(time.monotonic() - begun), 60)
        return f"{minutes}:{seconds:02}"

    def write(text: str) -> None:
        nonlocal told
        if time.monotonic() - told >= QUIET_SECONDS:
            told = time.monotonic()
            click.echo(f"after {passed()}: {text}", err=True)

    if not sys.stderr.isatty():
        yield write
        return
    with Console(stderr=True).status("reading") as status:
        yield lambda text: status.update(f"{passed()}  {escape(text)}")
