"""``grader simulate``: any program, or script with Triton, on the simulator, with all checks."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli import options
from grader.cli.arguments import FaultError, check_folders
from grader.cli.options import FILE
from grader.processes.imports import importing
from grader.records.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


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
@click.option("-I", "includes", multiple=True, metavar="DIR", help="A folder of headers, for nvcc.")
@click.option("-D", "macros", multiple=True, metavar="NAME[=VALUE]", help="A macro, for nvcc.")
@click.option("--std", "-std", "standard", metavar="STANDARD", help="That of C++; c++17 if not given.")
@click.option(
    "--source",
    "further",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    multiple=True,
    help="A further source or library of the program, for nvcc; repeatable.",
)
@click.option("--make", is_flag=True, help="PROGRAM is a target that make builds first, anew, here.")
@click.option("--verbose", is_flag=True, help="Print what builds the program.")
@options.of_grading("all_configs")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def simulate(
    program: tuple[str, ...],
    json_path: Path | None,
    leak_check: bool,
    checks: tuple[str, ...],
    budget: int | None,
    seconds: float | None,
    includes: tuple[str, ...],
    macros: tuple[str, ...],
    standard: str | None,
    further: tuple[Path, ...],
    make: bool,
    verbose: bool,
    all_configs: bool,
) -> int:
    """Run a PROGRAM on the simulator and print what its checks find.

    PROGRAM is a CUDA source PROGRAM.cu, which nvcc builds first, or a program that nvcc built with
    -cudart shared, or a Python script SCRIPT.py whose kernels are in Triton. Options behind -- are the
    program's.
    """
    with importing():
        from grader.languages.cache import Cache  # noqa: PLC0415
        from grader.languages.pytorch import device_library  # noqa: PLC0415
        from grader.records.errors import MachineError  # noqa: PLC0415
        from grader.simulator.simulate import simulate as run  # noqa: PLC0415

    check_folders(json_path)
    first, *arguments = program
    flags = [f"-I{folder}" for folder in includes] + [f"-D{macro}" for macro in macros]
    flags += [f"-std={standard}"] if standard else []
    try:
        built = _made(first, verbose=verbose) if make else _built(first, further, flags, verbose=verbose)
        with built as runnable:
            return run(
                (runnable, *arguments),
                json_path=json_path,
                leak_check=leak_check,
                overflow="overflow" in checks,
                all_configs=all_configs,
                budget=budget,
                seconds=seconds,
                shown_argv=program,
                pytorch_device=partial(device_library, Cache()),
            )
    except MachineError as error:
        raise FaultError(str(error), ExitCode.MACHINE_FAULT) from error


@contextmanager
def _built(name: str, further: Sequence[Path], flags: Sequence[str], *, verbose: bool) -> Iterator[str]:
    """The program of that name; of a source, one that is built for as long as it is needed.

    Raises:
        FaultError: nvcc refuses the source, or there is none for the options of nvcc.
        ToolchainError: nvcc or g++ is missing.
    """
    source = Path(name)
    if source.suffix not in {".cu", ".cpp", ".cc"} or not source.is_file():
        if further or flags:
            raise FaultError(f"{name} is no source that nvcc could build with these options.", ExitCode.USAGE)
        yield name
        return
    with importing():
        from grader.languages.cache import Cache  # noqa: PLC0415
        from grader.languages.cuda import toolchain  # noqa: PLC0415
        from grader.languages.cuda.program import build_program, of_libraries  # noqa: PLC0415
        from grader.simulator.driver import LIBRARIES  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, source.stem)
        sources, compilers = (source, *further), toolchain.find()
        flags = (*flags, *of_libraries(sources, compilers, Cache()))
        if not build_program(sources, program, compilers, LIBRARIES, flags, verbose=verbose):
            raise FaultError(f"{source} was not built: see nvcc's messages above.", ExitCode.USAGE)
        yield str(program)


@contextmanager
def _made(target: str, *, verbose: bool) -> Iterator[str]:
    """The program that make builds here.

    Raises:
        FaultError: there is no make, or it fails, or makes no such program.
        ToolchainError: nvcc or g++ is missing.
    """
    with importing():
        from grader.languages.cuda import toolchain  # noqa: PLC0415
        from grader.languages.cuda.program import make_program  # noqa: PLC0415
        from grader.simulator.driver import RUNTIME  # noqa: PLC0415

    if shutil.which("make") is None:
        raise FaultError("make is not installed.", ExitCode.MACHINE_FAULT)
    with tempfile.TemporaryDirectory() as folder:
        if not make_program(target, Path(folder), toolchain.find(), RUNTIME, verbose=verbose):
            raise FaultError(f"{target} was not built: see make's messages above.", ExitCode.USAGE)
        if not Path(target).is_file():
            raise FaultError(f"make made no {target}: name the target that is the program.", ExitCode.USAGE)
        yield str(Path(target).absolute())
