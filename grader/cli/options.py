"""Options that several commands share."""

from __future__ import annotations

from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from grader.records.record import SEED_BITS
from grader.run.options import GradingOptions, spelled

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import Field

Command = TypeVar("Command", bound="Callable[..., Any]")
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
INPUT = click.Path(path_type=Path, dir_okay=False, exists=True)

assignment = click.option(
    "--assignment",
    metavar="ID|FOLDER",
    help="An installed assignment, or the folder of one, whose code is run as the grader's own.",
)
seed = click.option(
    "--seed", type=click.IntRange(0, 2**SEED_BITS - 1), help="Repeat the inputs of an earlier run."
)
junit = click.option("--junit", "junit_path", type=FILE, metavar="FILE", help="Write JUnit XML to FILE.")
gradescope = click.option(
    "--gradescope",
    "gradescope_path",
    type=FILE,
    metavar="FILE",
    help="Write Gradescope's results.json to FILE.",
)
submitted = click.option(
    "--submitted",
    type=INPUT,
    metavar="CSV",
    help="Lines of SUBMISSION,SUBMITTED,STUDENT: when each was handed in, and by whom.",
)
staff = click.option("--staff", is_flag=True, help="Show seeds and reasons that are not for students.")

OF_SLURM = {"partition", "account", "minutes", "slurm_options"}
"""The names of the parameters below."""


def of_grading(*names: str) -> Callable[[Command], Command]:
    """The options of ``GradingOptions`` of these names."""

    def add(command: Command) -> Command:
        for option in reversed(fields(GradingOptions)):
            if option.name in names:
                command = _option(option)(command)
        return command

    return add


def grading(command: Command) -> Command:
    """All options of ``GradingOptions``, with which the command is called as its parameter ``how``."""
    names = [option.name for option in fields(GradingOptions)]

    @wraps(command)
    def with_options(**parameters: Any) -> object:  # noqa: ANN401 - as click calls it
        how = GradingOptions(**{name: parameters.pop(name) for name in names})
        return command(**parameters, how=how)

    return of_grading(*names)(cast("Command", with_options))


def _option(option: Field[Any]) -> Callable[[Command], Command]:
    name, choices = spelled(option.name), option.metadata.get("choices")
    help_text = option.metadata.get("help")
    if choices is None:
        return click.option(name, is_flag=True, help=help_text)
    return click.option(
        name, type=click.Choice(choices), default=option.default, show_default=True, help=help_text
    )


def of_slurm(minutes: int) -> Callable[[Command], Command]:
    """The options of a Slurm job, whose time limit is ``minutes`` unless another is given."""
    added = (
        click.option("--partition", metavar="NAME", help="Slurm partition to submit to."),
        click.option("--account", metavar="NAME", help="Slurm account that is charged."),
        click.option(
            "--time",
            "minutes",
            type=click.IntRange(min=1),
            default=minutes,
            show_default=True,
            help="Minutes that a Slurm task may take.",
        ),
        click.option(
            "--slurm-option",
            "slurm_options",
            multiple=True,
            metavar="NAME=VALUE",
            callback=_slurm_options,
            help="Further option of sbatch, such as constraint=a100; repeatable.",
        ),
    )

    def add(command: Command) -> Command:
        for option in reversed(added):
            command = option(command)
        return command

    return add


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
