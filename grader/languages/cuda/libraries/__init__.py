"""CUDA's libraries that a program may use if its assignment says so, and what takes their place on the sim.

A program is linked with the file name of NVIDIA's library. On a GPU it gets NVIDIA's; on the sim it gets one
that is built here of kernels beside this file, which the sim's checks watch like those of a student.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grader.languages.cache import key
from grader.languages.cuda.compile import (
    FOR_THE_SIM,
    FORMAT,
    LOG,
    PTX_ARCHITECTURE,
    Compilation,
    compiled,
    link_folder,
)
from grader.languages.cuda.toolchain import ToolchainError, runtime_folder
from grader.languages.jobs import BuildError, compile_limits
from grader.sandbox.sandbox import Job

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from grader.languages.cache import Cache
    from grader.languages.cuda.toolchain import Toolchain
    from grader.sandbox.sandbox import Sandbox

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
FOLDER = Path(__file__).parent
HEADERS = FOLDER / "include"
_SCRIPT = """\
nvcc "$@" >log 2>&1
code=$?
[ $code -ne 255 ] || code=1  # nvcc where ptxas fails; a sandbox takes it for a signal
cat log
exit $code
"""


@dataclass(frozen=True)
class Library:
    """A library of CUDA.

    Attributes:
        name: in assignments.
        headers: regular expression for those that a source includes to use it.
        version: behind the name of its file; "" where that is the version of CUDA.
        linked: whether it has a file: others are headers alone.
    """

    name: str
    headers: str
    version: str = ""
    linked: bool = True

    @property
    def calls(self) -> str:
        """Regular expression for its functions."""
        return rf"{self.name}[A-Z]\w*"

    def file(self, toolchain: Toolchain) -> str:
        """The name of its file, by which the loader finds it."""
        return f"lib{self.name}.so.{self.version or toolchain.version.partition('.')[0]}"


LIBRARIES = {
    library.name: library
    for library in (
        Library("thrust", r"thrust/[^\">]+", linked=False),
        Library("cub", r"cub/[^\">]+", linked=False),
        Library("cublas", r"cublas(_v2|_api)?\.h"),
        Library("curand", r"curand(_kernel)?\.h", version="10"),
        Library("cusparse", r"cusparse\.h", version="12"),
    )
}
"""Every library that an assignment can allow, by name."""


@dataclass(frozen=True)
class Inclusion:
    """Where a source includes a header of a library."""

    library: Library
    header: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} includes {self.header}"


def inclusions(contents: Mapping[str, bytes], allowed: Collection[str]) -> Iterator[Inclusion]:
    """Where files include headers of libraries that are not ``allowed``."""
    refused = [library for library in LIBRARIES.values() if library.name not in allowed]
    for file, content in contents.items():
        text = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), content.decode(errors="replace"))
        for number, line in enumerate(text.splitlines(), 1):
            for library in refused:
                if included := re.search(rf"^\s*#\s*\w+.*?[\"<]({library.headers})[\">]", line):
                    yield Inclusion(library, included[1], file, number)


def replacements(
    names: Collection[str], toolchain: Toolchain, sandbox: Sandbox, cache: Cache
) -> tuple[Path, ...]:
    """The files that take the place of the libraries of these names on the sim, built or from the cache.

    Raises:
        BuildError: the machine failed.
    """
    linked = [LIBRARIES[name] for name in names if LIBRARIES[name].linked]
    return tuple(_replacement(library, toolchain, sandbox, cache) for library in linked)


def needed(program: Path, libraries: Collection[Path]) -> tuple[Path, ...]:
    """Those of ``libraries`` without which the loader does not start ``program``."""
    content = program.read_bytes() if libraries else b""
    return tuple(library for library in libraries if library.name.encode() in content)


def real(file: str, toolchain: Toolchain) -> Path:
    """NVIDIA's library of that name on this machine, or in the image that programs run in.

    Raises:
        ToolchainError: there is none.
    """
    folder = toolchain.runtime if toolchain.image else runtime_folder(toolchain.root, file)
    if folder is None:
        name = file.removeprefix("lib").partition(".")[0]
        raise ToolchainError(
            f"{file} is missing, which the program needs on a GPU. Install it:\n"
            f"  python -m pip install nvidia-{name}    (or a whole CUDA toolkit)"
        )
    return folder / file


def _replacement(library: Library, toolchain: Toolchain, sandbox: Sandbox, cache: Cache) -> Path:
    source, file, runtime = f"{library.name}.cu", library.file(toolchain), link_folder(toolchain)
    files = {source: (FOLDER / source).read_bytes()}
    files |= {path.name: path.read_bytes() for path in sorted(HEADERS.iterdir())}
    arguments = (
        *("-shared", "-Xcompiler", "-fPIC", "-O3", "-std=c++17", "--extended-lambda", *FOR_THE_SIM),
        *("-gencode", f"arch={PTX_ARCHITECTURE},code={PTX_ARCHITECTURE}", "-Xcompiler", "-idirafter,."),
        *("-cudart", "none", f"-L{runtime}", "-Xlinker", f"-l:{toolchain.runtime_name}"),
        *("-Xlinker", f"-soname={file}", "-o", file, source),
    )
    parts = [part for name in sorted(files) for part in (name, files[name])]
    compilation = Compilation(
        title=f"the simulator's {library.name}",
        command=" ".join(("nvcc", *arguments)),
        artefact=file,
        names=frozenset(files),
        empty=(),
        job=Job(
            argv=("/bin/sh", "-c", _SCRIPT, "compile", *arguments),
            limits=compile_limits(),
            inputs=(*toolchain.inputs, runtime),
            outputs=(file, LOG),
            files=files,
            environment=toolchain.environment,
        ),
    )
    entry = key(FORMAT, _SCRIPT, toolchain.identity, *arguments, "", *parts)
    build = compiled(compilation, entry, sandbox, cache)
    if build.artefact is None:
        raise BuildError(f"{compilation.title} does not compile: {build.log}")
    return build.artefact
