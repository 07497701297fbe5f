"""``grader simulate``: any program, or script with Triton, on the simulator, with all checks."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli import options
from grader.cli.arguments import FaultError, check_folders
from grader.cli.options import FILE
from grader.processes.imports import importing
from grader.records.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--json", "json_path", type=FILE, metavar="FILE", help="Write the findings to FILE.")
@click.option("--leak-check", is_flag=True, help="Report device memory that is not freed at exit.")
@click.option(
    "--check",
    "checks",
    type=click.Choice(["overflow"]),
    multiple=True,
    help="Check this, too. overflow: 32-bit arithmetic that wraps and decides an address.",
)
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    metavar="N",
    help="Warp instructions that one kernel may run before it counts as hung; 1,000,000,000 if not given.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="End the program after N seconds and tell what was found; exit code 124. Never if not given.",
)
@options.all_configs
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def simulate(
    program: tuple[str, ...],
    json_path: Path | None,
    leak_check: bool,
    checks: tuple[str, ...],
    budget: int | None,
    seconds: float | None,
    all_configs: bool,
) -> int:
    """Run a PROGRAM on the simulator and print what its checks find.

    PROGRAM is a CUDA source PROGRAM.cu, which nvcc builds first, or a program that nvcc built with
    -cudart shared, or a Python script SCRIPT.py whose kernels are in Triton.
    """
    with importing():
        from grader.records.errors import MachineError  # noqa: PLC0415
        from grader.simulator.simulate import simulate as run  # noqa: PLC0415

    check_folders(json_path)
    first, *arguments = program
    try:
        with _built(first) as runnable:
            return run(
                (runnable, *arguments),
                json_path=json_path,
                leak_check=leak_check,
                overflow="overflow" in checks,
                all_configs=all_configs,
                budget=budget,
                seconds=seconds,
                shown_argv=program,
            )
    except MachineError as error:
        raise FaultError(str(error), ExitCode.MACHINE_FAULT) from error


@contextmanager
def _built(name: str) -> Iterator[str]:
    """The program of that name; of a source, one that is built for as long as it is needed.

    Raises:
        FaultError: nvcc refuses the source.
        ToolchainError: nvcc or g++ is missing.
    """
    source = Path(name)
    if source.suffix != ".cu" or not source.is_file():
        yield name
        return
    with importing():
        from grader.languages.cuda import toolchain  # noqa: PLC0415
        from grader.languages.cuda.program import build_program  # noqa: PLC0415
        from grader.simulator.driver import LIBRARIES  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, source.stem)
        if not build_program(source, program, toolchain.find(), LIBRARIES):
            raise FaultError(f"{source} was not built: see nvcc's messages above.", ExitCode.USAGE)
        yield str(program)
