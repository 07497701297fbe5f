"""Builds what a Python file compiles: nvcc for its kernels, g++ for the host's part, in a sandbox.

PyTorch's own headers take a minute to compile. Those in ``include`` have what launchers use of them, under
the same names, and reach PyTorch through the Python that calls the module.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from grader.languages.cache import key
from grader.languages.cuda import compile as compiling
from grader.languages.cuda.compile import (
    FOR_THE_SIM,
    PTX_ARCHITECTURE,
    STAND_IN_FOLDER,
    Compilation,
    compiled,
    last,
    link_folder,
    stand_ins,
)
from grader.languages.inline.constants import SourceError
from grader.languages.inline.source import flags
from grader.sandbox.sandbox import Job

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grader.languages.cache import Cache
    from grader.languages.cuda.toolchain import Toolchain
    from grader.languages.language import Build
    from grader.sandbox.sandbox import Limits, Sandbox

LIBRARY = "module.so"
_INCLUDE = Path(__file__).parent / "include"
_FOLDER = "pytorch"  # of these headers in the job
_STANDARD = "-std=c++20"  # as PyTorch's function says

_OF_CUDA = re.compile(
    r"-O[0-3]|-?-(use_fast_math|fmad=(true|false)|ftz=(true|false)|prec-(div|sqrt)=(true|false)"
    r"|expt-relaxed-constexpr|expt-extended-lambda|extended-lambda|maxrregcount=\d+|extra-device-vectorization)"
    r"|-[DU]\w+(=[\w.+-]*)?"
)
_OF_CPP = re.compile(r"-O[0-3]|-ffast-math|-fno-[a-z-]+|-[DU]\w+(=[\w.+-]*)?")
_IGNORED = re.compile(
    r"-std=c\+\+\w+|--std=c\+\+\w+|-lineinfo|--generate-line-info|-W[\w-]*(=[\w-]+)?|-w|-v|-g|-?-verbose|-fPIC"
    r"|-?-(gencode|arch|gpu-architecture|generate-code)(=\S+)?|arch=\S+|code=\S+|(sm|compute)_\w+"
    r"|-?-ptxas-options=(-v|-O[0-3]|--verbose|--warn-on-spills)(,\S+)*|-?-threads(=\d+)?|-?-diag-suppress=[\d,]+"
    r"|-?-resource-usage|-march=native|-mtune=native|-?-split-compile=\d+"
)
"""What says for which GPU or how loudly: the grader does as it does for all."""

_NO_HALF = (
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
)
"""As PyTorch's function builds."""

_SCRIPT = """\
objects=main.o
g++ $CPP -c main.cpp -o main.o >log 2>&1 &
code=0
if [ -f cuda.cu ]; then
  nvcc "$@" cuda.cu >cuda.log 2>&1 || code=$?
  objects="$objects cuda.o"
fi
wait $! || code=$?
[ ! -f cuda.log ] || cat cuda.log >>log
if [ $code -eq 0 ]; then
  g++ -shared -Wl,-z,defs $WRAP -o module.so $objects -L"$LINK" -l:"$RUNTIME" >>log 2>&1 || code=$?
fi
[ $code -ne 255 ] || code=1  # nvcc where ptxas fails; a sandbox takes it for a signal
c++filt <log
exit $code
"""


class Module(Protocol):
    """What a call of a Python file builds."""

    @property
    def line(self) -> int:
        """The line of the call."""

    @property
    def called(self) -> str:
        """The function that is called."""

    @property
    def key(self) -> str:
        """The name of what it builds."""

    @property
    def cuda_flags(self) -> tuple[str, ...]:
        """Flags for nvcc."""

    @property
    def cpp_flags(self) -> tuple[str, ...]:
        """Flags for the host's compiler."""

    @property
    def headers(self) -> str:
        """The pattern of the names of the headers that it may include."""

    @property
    def wrapped(self) -> tuple[str, ...]:
        """Functions that these headers define instead of the runtime."""

    def sources(self, file: str) -> Mapping[str, bytes]:
        """The files to compile, by which a compiler that speaks of their lines names those of ``file``."""


def build(
    module: Module,
    file: str,
    toolchain: Toolchain,
    sandbox: Sandbox,
    limits: Limits,
    cache: Cache,
    architecture: str,
) -> Build:
    """Build a module of ``file``, or take it from the cache.

    Args:
        module: what the file says of it.
        file: its name.
        toolchain: the compilers.
        sandbox: what confines them.
        limits: what they may use.
        cache: where builds are kept.
        architecture: the GPU to make machine code for, such as ``sm_90``.

    Raises:
        SourceError: it asks for flags that are not taken.
        BuildError: the machine failed.
    """
    cuda_flags, refused = flags(_joined(module.cuda_flags), _OF_CUDA, _IGNORED)
    cpp_flags, also_refused = flags(module.cpp_flags, _OF_CPP, _IGNORED)
    if refused + also_refused:
        raise SourceError(
            module.line,
            f"{module.called} gets flags that are not taken here: {' '.join(refused + also_refused)}",
        )
    sources = module.sources(file)
    empty = stand_ins(sources, toolchain.root / "include")
    needed = {**sources, **_headers(module.headers), **{f"{STAND_IN_FOLDER}/{name}": b"" for name in empty}}
    arguments = (
        *("-c", "-O3", _STANDARD, "-Xcompiler", "-fPIC", *_NO_HALF, *cuda_flags, *FOR_THE_SIM),
        *("-DTORCH_EXTENSION_NAME=extension", "-DNVTX_DISABLE", "-Xptxas", "-v", "-isystem", _FOLDER),
        *(last(STAND_IN_FOLDER) if empty else ()),
        *("-gencode", f"arch={PTX_ARCHITECTURE},code=[{PTX_ARCHITECTURE},{architecture}]", "-o", "cuda.o"),
    )
    include = ("-isystem", _FOLDER, "-isystem", str(toolchain.root / "include"))
    of_cpp = " ".join(("-O2", _STANDARD, "-fPIC", "-DTORCH_EXTENSION_NAME=extension", *cpp_flags, *include))
    wrap = " ".join(f"-Wl,--wrap={name}" for name in module.wrapped)
    files = [part for name in sorted(needed) for part in (name, needed[name])]
    tools = (_SCRIPT, of_cpp, wrap, toolchain.identity, toolchain.runtime_name)
    runtime = link_folder(toolchain)
    compilation = Compilation(
        title=file,
        command=f"python {file}",
        artefact=LIBRARY,
        names=frozenset({file}),
        empty=empty,
        job=Job(
            argv=("/bin/sh", "-c", _SCRIPT, "compile", *arguments),
            limits=limits,
            inputs=(*toolchain.inputs, runtime),
            outputs=(LIBRARY, compiling.LOG),
            files=needed,
            environment={
                **toolchain.environment,
                "LINK": str(runtime),
                "RUNTIME": toolchain.runtime_name,
                "CPP": of_cpp,
                "WRAP": wrap,
            },
        ),
    )
    return compiled(compilation, key("inline 1", *tools, *arguments, "", *files), sandbox, cache)


def _joined(options: tuple[str, ...]) -> tuple[str, ...]:
    """Flags with their values in one: ``-Xptxas -v`` is ``--ptxas-options=-v``."""
    text = " ".join(options)
    text = re.sub(r"-(?:Xptxas|-ptxas-options)[ =]", "--ptxas-options=", text)
    return (re.sub(r"(-?-(?:maxrregcount|fmad)) (?=\w)", r"\1=", text),)


@cache
def _headers(pattern: str) -> Mapping[str, bytes]:
    """The headers of these names, by their path in the job."""
    return {
        f"{_FOLDER}/{path.relative_to(_INCLUDE).as_posix()}": path.read_bytes()
        for path in sorted(_INCLUDE.rglob(pattern))
        if path.is_file()
    }
