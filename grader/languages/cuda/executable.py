"""Builds a program of a submission's files and the assignment's own, in the sandbox, kept by content."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from grader.languages.cache import key
from grader.languages.cuda.compile import (
    DEFAULT_ARCHITECTURE,
    FOR_THE_SIM,
    FORMAT,
    LOG,
    PTX_ARCHITECTURE,
    Compilation,
    compiled,
    last,
    link_folder,
    placed,
    placeholders,
    reachable,
    searched,
    stand_ins,
)
from grader.languages.cuda.libraries import HEADERS, LIBRARIES
from grader.languages.cuda.source import functions
from grader.languages.cuda.toolchain import cmake_program
from grader.sandbox.sandbox import Job

if TYPE_CHECKING:
    import threading
    from collections.abc import Collection, Mapping, Sequence

    from grader.languages.cache import Cache
    from grader.languages.cuda.toolchain import Toolchain
    from grader.languages.language import Build
    from grader.sandbox.sandbox import Limits, Sandbox

COMPILED = frozenset({".cu", ".cpp", ".cc", ".c"})
"""The suffixes of files that are compiled; others are only included."""

_PROGRAM = "program"
_SCRIPT = """\
nvcc "$@" >log 2>&1
code=$?
[ $code -ne 255 ] || code=1  # nvcc where ptxas fails; a sandbox takes it for a signal
c++filt <log
exit $code
"""
_PROJECT = """\
mkdir project  # where make may write
find . -mindepth 1 -maxdepth 1 ! -name project -exec cp -R {} project/ ";"
cd project || exit 1
mkdir -p cuda/lib64
ln -s "$TOOLKIT/include" cuda/include
for library in "$TOOLKIT"/lib64/* "$TOOLKIT"/lib/*; do ln -sf "$library" cuda/lib64/; done 2>/dev/null
ln -sf "$RUNTIME" cuda/lib64/libcudart.so
for library in $LIBRARIES; do
  name=${library##*/}
  ln -sf "$library" "cuda/lib64/${name%%.so*}.so"
done
chmod +x cuda/bin/nvcc
export PATH="$PWD/cuda/bin:$PATH" LIBRARY_PATH="$PWD/cuda/lib64" CPATH="$PWD/cuda/include$HEADERS"
"""
_MAKE = f"""\
{_PROJECT}\
make "$1" CUDA_PATH="$PWD/cuda" CUDA_HOME="$PWD/cuda" CUDA_DIR="$PWD/cuda" >../log 2>&1
code=$?
[ $code -ne 0 ] || cp -- "$1" ../program >>../log 2>&1 || code=1
c++filt <../log
exit $code
"""
# Its settings are a file, as CMake warns of those on its command line that a project does not use.
_CMAKE = f"""\
{_PROJECT}\
export CUDACXX="$PWD/cuda/bin/nvcc"
cmake=${{CMAKE:-cmake}}
cat >../settings.cmake <<END
set(CMAKE_BUILD_TYPE Release CACHE STRING "")
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared CACHE STRING "")
set(CUDAToolkit_ROOT "$PWD/cuda" CACHE PATH "")
set(CMAKE_SUPPRESS_DEVELOPER_WARNINGS ON CACHE INTERNAL "")
END
{{
  "$cmake" -S . -B made -C ../settings.cmake --log-level=WARNING && "$cmake" --build made --target "$1"
}} 2>../log >/dev/null
code=$?
if [ $code -eq 0 ]; then
  program=$(find made -type f -name "$1" -perm -u+x | head -n 1)
  cp -- "${{program:-$1}}" ../program >>../log 2>&1 || code=1
fi
c++filt <../log
exit $code
"""
WRAPPER = "cuda/bin/nvcc"
NVCC = """\
#!/bin/sh
# nvcc for a Makefile: for which GPU, and which CUDA runtime, is the grader's to choose.
links=yes
rest=$#
while [ "$rest" -gt 0 ]; do
  word=$1
  shift
  rest=$((rest - 1))
  case $word in
    -arch | --gpu-architecture | -gencode | --generate-code | -code | --gpu-code | -cudart | --cudart)
      shift
      rest=$((rest - 1))
      continue ;;
    -arch=* | --gpu-architecture=* | -gencode=* | --generate-code=* | -code=* | --gpu-code=* | -cudart=* \\
      | --cudart=* | -lcudart | -lcudart_static) continue ;;
    -c | --compile | -dc | --device-c | -M | -MM | -E | -ptx | --ptx | -lib | --lib | --version | -V)
      links= ;;
  esac
  set -- "$@" "$word"
done
set -f
[ -z "$links" ] || set -- "$@" $LINKING
exec "$REAL_NVCC" $COMPILING "$@"
"""
"""The compiler of a project: what it adds is in COMPILING and LINKING, and what it calls in REAL_NVCC."""
_LACKS = (
    "The assignment links with {library}, which the linker does not find on this machine: install it, or "
    "take it out of the assignment's flags."
)
_OWN_RUNTIME = (
    "The program has a CUDA runtime of its own, as its Makefile does not call the nvcc of the grader: call "
    "it as nvcc or $(CUDA_PATH)/bin/nvcc, and link with it or with -lcudart."
)
_NO_MAKE = re.compile(r"\b(c?make): (command )?not found")
_NO_SUCH_PROGRAM = 127
_NO_TARGET = re.compile(r"No rule to make target|cannot stat '|unknown target '|Cannot find source file")
_NO_FILE = re.compile(r"No rule to make target [`']([^']+)', needed by [`']([^']+)'")
_NO_RULE = re.compile(r"(?:No rule to make|unknown) target [`']([^']+)'")
_NOT_MADE = re.compile(r"cannot stat '([^']+)'")
_STRICT = "-Werror all-warnings"  # among the flags of an assignment
_FLAGS = ("-O3", "-std=c++17")
_RELOCATABLE = frozenset({"-rdc=true", "--relocatable-device-code=true"})
_GRADER_FLAGS = (*FOR_THE_SIM, "-DNVTX_DISABLE", "-Xptxas", "-v", "-I.")
_NO_MAIN = re.compile(r"undefined reference to [`']main'")
_TWO_MAINS = re.compile(r"multiple definition of [`']main'")
_UNDEFINED = re.compile(r"undefined reference to [`']([^']+)'")
_NO_LIBRARY = re.compile(r"cannot find (-l\S+?):? ")
_UNKNOWN = re.compile(r'identifier "(\w+)" is undefined')
_SHOWN = 5


@dataclass(frozen=True)
class Recipe:
    """What makes a program of files.

    Attributes:
        sources: the student's files that are compiled.
        contents: these and the headers that belong to them, by path from their folder.
        given: the assignment's files, which come before the student's of the same name.
        flags: of nvcc, the assignment's.
        make: the target of a Makefile among these files that is the program; "" where nvcc compiles them.
        cmake: likewise of a CMakeLists.txt.
        libraries: files of CUDA's libraries, of which those are linked that the program calls.
    """

    sources: Sequence[str]
    contents: Mapping[str, bytes]
    given: Mapping[str, bytes] = field(default_factory=dict)
    flags: Sequence[str] = ()
    make: str = ""
    cmake: str = ""
    libraries: Sequence[Path] = ()

    @property
    def target(self) -> str:
        """The target of the project; "" where there is none."""
        return self.make or self.cmake

    @property
    def title(self) -> str:
        """The student's files, for people."""
        return ", ".join(self.sources)

    @property
    def shown(self) -> tuple[str, ...]:
        """What a student can type to see the same."""
        if self.make:
            return "make", self.make
        if self.cmake:
            return "cmake", "--build", "build", "--target", self.cmake
        standard = _FLAGS if not any("std=" in flag for flag in self.flags) else _FLAGS[:1]
        compiled = [*self.sources, *(name for name in self.given if PurePosixPath(name).suffix in COMPILED)]
        return "nvcc", *standard, *self.compiling, *dict.fromkeys(compiled), *self.linking

    @property
    def linking(self) -> tuple[str, ...]:
        """The flags that name libraries."""
        return tuple(flag for flag in self.flags if flag.startswith("-l"))

    @property
    def compiling(self) -> tuple[str, ...]:
        """All other flags."""
        return tuple(flag for flag in self.flags if not flag.startswith("-l"))


def build_executable(
    recipe: Recipe,
    toolchain: Toolchain,
    sandbox: Sandbox,
    limits: Limits,
    cache: Cache,
    architecture: str = DEFAULT_ARCHITECTURE,
    given_up: threading.Event | None = None,
) -> Build:
    """Compile and link a program, or take it from the cache; wait while other compiles fill this machine.

    Args:
        recipe: of what, and how.
        toolchain: the compilers.
        sandbox: what confines them.
        limits: what they may use; a limit that is hit is a failed build that names it.
        cache: where builds are kept.
        architecture: the GPU to make machine code for, such as ``sm_90``.
        given_up: set by another thread to end the wait.

    Raises:
        BuildError: the machine failed, or lacks a library that the assignment links with.
    """
    contents = recipe.contents
    included = {name: text for file in recipe.sources for name, text in reachable(file, contents).items()}
    needed = {**{placed(name): text for name, text in included.items()}, **recipe.given}
    above = {placed(name) for name in included} != included.keys()
    headers = HEADERS if recipe.libraries else None
    empty = stand_ins(needed, toolchain.root / "include", *([headers] if headers else ()))
    runtime = link_folder(toolchain)
    compiling = (
        *_GRADER_FLAGS,
        *(last(str(headers)) if headers else ()),
        *searched(empty, above=above),
        *("-gencode", f"arch={PTX_ARCHITECTURE},code=[{PTX_ARCHITECTURE},{architecture}]"),
    )
    linking = (
        *(_linked(recipe.libraries) if not recipe.cmake else ()),
        # nvcc links device code of several files only if it links the runtime, too.
        *("-cudart", "shared" if _RELOCATABLE & set(recipe.flags) else "none"),
        *(f"-L{runtime}", "-Xlinker", "--no-as-needed"),
        # CMake takes over what nvcc links with, and knows no names of files.
        *(("-lcudart",) if recipe.cmake else ("-Xlinker", f"-l:{toolchain.runtime_name}")),
    )
    if recipe.target:
        script, arguments = _MAKE if recipe.make else _CMAKE, (recipe.target,)
        compiling, linking = (*compiling, *recipe.compiling), (*recipe.linking, *linking)
        needed |= {WRAPPER: NVCC.encode()}
    else:
        script, arguments = _SCRIPT, (*compiling, "-o", _PROGRAM, *recipe.shown[1:], *linking)
    cmake = cmake_program() if recipe.cmake and not toolchain.image else None
    environment = {
        **toolchain.environment,
        **({"CMAKE": str(cmake)} if cmake else {}),
        **({"COMPILING": " ".join(compiling), "LINKING": " ".join(linking)} if recipe.target else {}),
        **({"REAL_NVCC": str(toolchain.nvcc), "TOOLKIT": str(toolchain.root)} if recipe.target else {}),
        **({"RUNTIME": str(runtime / toolchain.runtime_name)} if recipe.target else {}),
        **({"LIBRARIES": " ".join(map(str, recipe.libraries))} if recipe.target and headers else {}),
        **({"HEADERS": f":{headers}"} if recipe.target and headers else {}),
    }
    needed |= placeholders(empty, above=above)
    files = [part for name in sorted(needed) for part in (name, needed[name])]
    settings = [part for name in sorted(environment) for part in (name, environment[name])]
    entry = key(FORMAT, script, toolchain.identity, *arguments, "", *settings, "", *files)
    compilation = Compilation(
        title=recipe.title,
        command=" ".join((*recipe.shown, *(() if recipe.target else (f"-arch={architecture}",)))),
        artefact=_PROGRAM,
        names=frozenset(contents),
        empty=empty,
        job=Job(
            argv=("/bin/sh", "-c", script, "compile", *arguments),
            limits=limits,
            inputs=(
                *toolchain.inputs,
                runtime,
                *([headers] if headers else ()),
                *(library.parent for library in recipe.libraries),
                *([cmake.parent.parent] if cmake and not cmake.is_relative_to("/usr") else ()),
            ),
            outputs=(_PROGRAM, LOG),
            files=needed,
            environment=environment,
        ),
        runs=True,
        refused=lambda made: _OWN_RUNTIME if _has_own_runtime(made, toolchain.runtime_name) else "",
        lacking=_lacking,
    )
    return compiled(compilation, entry, sandbox, cache, given_up)


def _linked(libraries: Sequence[Path]) -> tuple[str, ...]:
    """Flags of nvcc that link with those of ``libraries`` that the program calls."""
    parts = ("--as-needed", *map(str, libraries)) if libraries else ()
    return tuple(word for part in parts for word in ("-Xlinker", part))


def _lacking(code: int, log: str) -> str:
    """What the machine lacks for the assignment's build; "" where that is nothing."""
    if absent := _NO_LIBRARY.search(log):
        return _LACKS.format(library=absent[1])
    if code == _NO_SUCH_PROGRAM and (tool := _NO_MAKE.search(log)):
        return f"The assignment is built by {tool[1]}, which is not installed on this machine."
    return ""


def _has_own_runtime(program: bytes, runtime: str) -> bool:
    """Whether a program has device code and does not load the CUDA runtime that is there when it is run."""
    return b".nv_fatbin" in program and runtime.encode() not in program


@dataclass(frozen=True)
class Unbuilt:
    """Why there is no program.

    Attributes:
        message: in one sentence.
        remedy: what to do about it; "" where the message says so.
        decides: whether it is the author's fault, and not something that the simulator lacks.
    """

    message: str
    remedy: str = ""
    decides: bool = True


def unbuilt(build: Build, allowed: Collection[str], contents: Mapping[str, bytes]) -> Unbuilt:
    """Why there is no program.

    Args:
        build: without one.
        allowed: the libraries that it may use.
        contents: the files that it was to be made of.
    """
    log = build.log
    if _NO_TARGET.search(log):
        return Unbuilt(f"{build.command} made no program: {_without_target(log)}")
    if _TWO_MAINS.search(log):
        return Unbuilt(
            f"more than one function main: of {build.source} and what comes with the assignment, one file "
            "alone may have it"
        )
    if _NO_MAIN.search(log):
        return Unbuilt(f"no main: {build.source} has no function main, with which a program begins")
    undefined = list(dict.fromkeys(_UNDEFINED.findall(log)))
    for name in (*_UNKNOWN.findall(log), *undefined):
        for library in allowed:
            if re.fullmatch(LIBRARIES[library].calls, name):
                return Unbuilt(
                    f"{name.removesuffix('_v2')} is none of the functions of {library} that the simulator "
                    "has",
                    "Use other functions, or write a kernel; docs/programs.md lists those that it has.",
                    decides=False,
                )
    if undefined:
        return Unbuilt(f"{build.source} was not linked{_unlinked(undefined, contents)}")
    strictly = ": warnings are errors in this assignment" if _STRICT in build.command else ""
    return Unbuilt(f"{build.source} did not compile{strictly}")


def _without_target(log: str) -> str:
    """Why make or CMake made nothing of the name that it was asked for."""
    if absent := _NO_FILE.search(log):
        return f"{absent[1]}, which {absent[2]} needs, is missing"
    if absent := _NO_RULE.search(log):
        return f"there is no target {absent[1]}. Give the target that makes the program this name"
    if absent := _NOT_MADE.search(log):
        return f"its target made no file {absent[1]}. The program has to have the name of the target"
    return "there is no such target, or a file that it needs is missing"


def _unlinked(undefined: Sequence[str], contents: Mapping[str, bytes]) -> str:
    """Why the linker does not find functions: they are defined as others than are called, or not at all."""
    defining = {
        function.name: file
        for file, text in reversed([*contents.items()])  # the first file counts
        for function in functions(text.decode(errors="replace"))
    }
    for name in undefined:
        called, parameters, _ = name.partition("(")
        file = defining.get(called.rpartition("::")[2])
        if file and parameters:
            return (
                f": what calls {called} asks for {name}, and {file} defines {called} with other parameters, "
                'as extern "C", as static, or in a namespace. Define it as it is declared where it is called'
            )
        if file:
            return (
                f': what calls {called} asks for an extern "C" function, and {file} defines it without: '
                f'write extern "C" before {called} in {file}'
            )
    more = f" and {len(undefined) - _SHOWN} more" if len(undefined) > _SHOWN else ""
    return (
        f", as nothing defines {', '.join(undefined[:_SHOWN])}{more}: it was never written, or belongs to a "
        "library that this assignment does not link with"
    )
