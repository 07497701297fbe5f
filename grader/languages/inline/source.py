"""The calls of ``load_inline`` in a Python file, read and not run: their texts, and the lines of these."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grader.languages.inline.constants import Constants, SourceError, parameters, plain, texts_of
from grader.runner.inlined import PARAMETERS, USED, key, texts

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from grader.languages.inline.constants import Text

_LOAD_INLINE = "load_inline"
_DEFINED = re.compile(r"\.def\(\s*\"(\w+)\"")
_MODULE = "PYBIND11_MODULE"
_SETTINGS = frozenset({"TORCH_CUDA_ARCH_LIST", "MAX_JOBS", "CUDA_LAUNCH_BLOCKING", "CXX", "CC"})
"""Variables of the environment that say how C++ is built, or how its launches are waited for."""


_WRAPPED = (
    "__cudaPushCallConfiguration",
    *("cudaLaunchKernel", "cudaLaunchCooperativeKernel"),
    *("cudaMemset", "cudaMemsetAsync", "cudaMemcpy", "cudaMemcpyAsync"),
    *("cudaMemcpyToSymbol", "cudaMemcpyToSymbolAsync"),
    *("cudaStreamSynchronize", "cudaStreamWaitEvent", "cudaEventRecord", "cudaMallocAsync", "cudaFreeAsync"),
)
"""Calls that ``exports.h`` gives the stream of the call, where they name none."""


@dataclass(frozen=True)
class Extension:
    """A module of C++ that a file builds.

    Attributes:
        line: of the call.
        key: the name of what it builds.
        cpp: the texts for the host's compiler.
        cuda: the texts for nvcc.
        functions: the functions that Python may call, where the texts define no module by themselves.
        functions_line: the line that they are named in.
        cpp_flags: for the host's compiler.
        cuda_flags: for nvcc.
        implicit: whether the usual headers are included.
        called, headers, wrapped: see ``Module``.
    """

    line: int
    key: str
    cpp: tuple[Text, ...]
    cuda: tuple[Text, ...]
    functions: tuple[str, ...]
    functions_line: int
    cpp_flags: tuple[str, ...]
    cuda_flags: tuple[str, ...]
    implicit: bool

    called = _LOAD_INLINE
    headers = "*.h"
    wrapped = _WRAPPED

    def sources(self, file: str) -> Mapping[str, bytes]:
        """The files to compile; see ``Module``."""
        main = ["#include <torch/extension.h>"] if self.implicit else []
        main += [text.placed(file) for text in self.cpp]
        if self.functions:
            main += [f'#line {self.functions_line} "{file}"', "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {"]
            for name in self.functions:
                main += [f'#line {self.functions_line} "{file}"']
                main += [f'm.def("{name}", torch::wrap_pybind_function({name}), "{name}");']
            main += ["}"]
        main += ['#line 1 "exports"', "#include <grader/exports.h>", ""]
        sources = {"main.cpp": "\n".join(main).encode()}
        if self.cuda:
            implicit = ["#include <torch/types.h>", "#include <cuda_runtime.h>"] if self.implicit else []
            texts = [*implicit, *(text.placed(file) for text in self.cuda), ""]
            sources["cuda.cu"] = "\n".join(texts).encode()
        return sources

    @property
    def names(self) -> frozenset[str]:
        """The names of the functions that Python may call."""
        defined = {name for text in (*self.cpp, *self.cuda) for name in _DEFINED.findall(text.content)}
        return frozenset(name for name in {*self.functions, *defined} if not name.startswith("_"))


def extensions(tree: ast.Module, content: bytes) -> tuple[Extension, ...]:
    """The modules that a file builds, in the order of their calls.

    Args:
        tree: of the file.
        content: of the file.

    Raises:
        SourceError: a call cannot be built from what the file says.
    """
    constants = Constants(tree, content)
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == _LOAD_INLINE
    }
    calls = sorted(
        (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_load_inline(node.func, names)),
        key=lambda node: (node.lineno, node.col_offset),
    )
    return tuple(_extension(call, constants) for call in calls)


def without_settings(tree: ast.Module) -> ast.Module:
    """A file without what it says of how PyTorch builds C++, and the import that this alone needs.

    Many files set ``os.environ["TORCH_CUDA_ARCH_LIST"]``. It means nothing here, and does no harm.
    """
    body = [node for node in tree.body if not _is_setting(node)]
    needed = len(body) == len(tree.body) or any(
        isinstance(node, ast.Name) and node.id == "os" for part in body for node in ast.walk(part)
    )
    return ast.Module([node for node in body if needed or ast.unparse(node) != "import os"], [])


def _is_setting(node: ast.stmt) -> bool:
    match node:
        case ast.Assign(
            targets=[
                ast.Subscript(
                    value=ast.Attribute(value=ast.Name(id="os"), attr="environ"),
                    slice=ast.Constant(value=str(name)),
                )
            ],
            value=ast.Constant(value=str()),
        ):
            return name in _SETTINGS
    return False


def _is_load_inline(function: ast.expr, names: Collection[str]) -> bool:
    match function:
        case ast.Name(id=name):
            return name in names
        case ast.Attribute(attr=name):
            return name == _LOAD_INLINE
    return False


def _extension(call: ast.Call, constants: Constants) -> Extension:
    """What a call builds."""
    nodes = parameters(call, _LOAD_INLINE, PARAMETERS)
    read: dict[str, Any] = {
        name: constants.read(call, _LOAD_INLINE, name, nodes[name]) if name in nodes else None
        for name in USED
    }
    values = {name: plain(value) for name, value in read.items()}
    cpp, cuda = (texts_of(read[name]) for name in ("cpp_sources", "cuda_sources"))
    functions = tuple(texts(values["functions"]))
    for function in functions:
        if not function.isidentifier():
            raise SourceError(call.lineno, f"load_inline gets {function!r} as the name of a function")
    if not functions and not any(_MODULE in text.content for text in (*cpp, *cuda)):
        raise SourceError(
            call.lineno,
            f"load_inline gets neither functions nor a {_MODULE}: name what Python is to call",
        )
    if texts(values["extra_ldflags"]):
        raise SourceError(call.lineno, "load_inline gets extra_ldflags: CUDA's runtime alone is linked here")
    return Extension(
        call.lineno,
        key(values),
        cpp,
        cuda,
        functions,
        nodes["functions"].lineno if functions else call.lineno,
        tuple(texts(values["extra_cflags"])),
        tuple(texts(values["extra_cuda_cflags"])),
        not values["no_implicit_headers"],
    )


def flags(
    options: Sequence[str], allowed: re.Pattern[str], ignored: re.Pattern[str]
) -> tuple[list[str], list[str]]:
    """The flags of a compiler that are taken, and those that are refused."""
    taken, refused = [], []
    for flag in (part for text in options for part in text.split()):
        if allowed.fullmatch(flag):
            taken.append(flag)
        elif not ignored.fullmatch(flag):
            refused.append(flag)
    return taken, refused
