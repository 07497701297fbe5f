"""Builds a whole program for the sim, as ``grader simulate`` wants it: by nvcc, or by the Makefile here.

It is the user's own program, run as the user, so it is built without a sandbox.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

from grader.languages.cuda.compile import FOR_THE_SIM, PTX_ARCHITECTURE, last, reachable
from grader.languages.cuda.executable import NVCC, WRAPPER
from grader.languages.cuda.libraries import HEADERS, inclusions, replacements
from grader.sandbox.backends import select

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from grader.languages.cache import Cache
    from grader.languages.cuda.toolchain import Toolchain

_FOR_THE_SIM = (*FOR_THE_SIM, "-gencode", f"arch={PTX_ARCHITECTURE},code={PTX_ARCHITECTURE}")
_STANDARD = "-std=c++17"
_SOURCES = {".cu", ".cpp", ".cc", ".c"}
_HEADERS = {".h", ".hh", ".hpp", ".cuh", ".inl"}


def of_libraries(sources: Sequence[Path], toolchain: Toolchain, cache: Cache) -> tuple[str, ...]:
    """Options of nvcc for what takes the place of the libraries of CUDA that ``sources`` include on the sim.

    Args:
        sources: of a program, and further files. What the sources include of their own lies beside them.
        toolchain: the compilers.
        cache: where the libraries that are built stay.

    Raises:
        BuildError: the machine failed.
    """
    included = set()
    for source in (path for path in sources if path.suffix in _SOURCES):  # not a library
        beside = {path.name: path for path in source.parent.iterdir() if path.suffix in _HEADERS}
        contents = {name: path.read_bytes() for name, path in {**beside, source.name: source}.items()}
        included |= {each.library.name for each in inclusions(reachable(source.name, contents), ())}
    files = replacements(sorted(included), toolchain, select(), cache)
    if not files:
        return ()
    linking = ("--as-needed", *(part for file in files for part in (str(file), f"-rpath={file.parent}")))
    return (*last(str(HEADERS)), *(word for part in linking for word in ("-Xlinker", part)))


def build_program(
    sources: Sequence[Path],
    program: Path,
    toolchain: Toolchain,
    runtime: Path,
    flags: Sequence[str] = (),
    *,
    verbose: bool = False,
) -> bool:
    """Build ``sources`` into ``program``; nvcc's messages go where ours go.

    Args:
        sources: the files, by the paths that findings shall show.
        program: where the program goes.
        toolchain: the compilers.
        runtime: the folder of the CUDA runtime library to link with.
        flags: further ones of nvcc.
        verbose: whether to print the command.

    Returns:
        Whether nvcc accepted it.
    """
    standard = () if any(flag.startswith(("-std", "--std")) for flag in flags) else (_STANDARD,)
    folders = (f"-L{runtime}", f"-L{toolchain.libraries}")
    command = [toolchain.nvcc, *standard, *_FOR_THE_SIM, "-cudart", "shared", *folders, *flags, "-o", program]
    return _ran([*map(str, command), *map(str, sources)], toolchain, {}, verbose=verbose)


def make_program(
    target: str, folder: Path, toolchain: Toolchain, runtime: Path, *, verbose: bool = False
) -> bool:
    """Let the Makefile of the current folder build ``target``, whatever GPU and runtime it asks for.

    All of it is built anew: objects that are there already may be for a GPU alone.

    Args:
        target: of the Makefile.
        folder: an empty one, for what the Makefile takes for the CUDA toolkit.
        toolchain: the compilers.
        runtime: the CUDA runtime library to link with.
        verbose: whether to print the command.

    Returns:
        Whether make succeeded.
    """
    wrapper, libraries = folder / WRAPPER, folder / "cuda" / "lib64"
    wrapper.parent.mkdir(parents=True)
    wrapper.write_text(NVCC, encoding="utf-8")
    wrapper.chmod(0o755)
    libraries.mkdir()
    for library in toolchain.libraries.iterdir():
        (libraries / library.name).symlink_to(library)
    (libraries / "libcudart.so").unlink(missing_ok=True)
    (libraries / "libcudart.so").symlink_to(runtime)
    include = folder / "cuda" / "include"
    include.symlink_to(toolchain.root / "include")
    linking = ("-cudart", "none", f"-L{runtime.parent}", "-Xlinker", "--no-as-needed")
    environment = {
        "PATH": str(wrapper.parent),
        "LIBRARY_PATH": str(libraries),
        "CPATH": str(include),
        "REAL_NVCC": str(toolchain.nvcc),
        "COMPILING": " ".join(_FOR_THE_SIM),
        "LINKING": " ".join((*linking, "-Xlinker", f"-l:{runtime.name}")),
    }
    roots = (f"{name}={folder / 'cuda'}" for name in ("CUDA_PATH", "CUDA_HOME", "CUDA_DIR"))
    return _ran(["make", "--always-make", target, *roots], toolchain, environment, verbose=verbose)


def _ran(command: Sequence[str], toolchain: Toolchain, first: dict[str, str], *, verbose: bool) -> bool:
    """Whether ``command`` succeeded, with the variables ``first`` before the user's."""
    if verbose:
        sys.stderr.write(f"grader: {shlex.join(command)}\n")
    folders = (first.get("PATH"), toolchain.environment["PATH"], os.environ.get("PATH"))
    environment = {**os.environ, **first, "PATH": os.pathsep.join(filter(None, folders))}
    return subprocess.run(command, env=environment, check=False).returncode == 0
