"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

from grader.records.record import SEED_BITS

FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
INPUT = click.Path(path_type=Path, dir_okay=False, exists=True)

assignment = click.option(
    "--assignment",
    metavar="ID|FOLDER",
    help="An installed assignment, or the folder of one, whose code is run as the grader's own.",
)
device = click.option(
    "--device", type=click.Choice(["auto", "gpu", "sim"]), default="auto", show_default=True
)
sandbox = click.option(
    "--sandbox",
    type=click.Choice(["auto", "docker", "bubblewrap", "process"]),
    default="auto",
    show_default=True,
    help="What confines compiling and running.",
)
memory = click.option(
    "--memory",
    type=click.Choice(["auto", "device", "host"]),
    default="auto",
    show_default=True,
    help="Whether the launchers take device or host pointers.",
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
