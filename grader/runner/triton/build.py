"""Compiles one kernel of a submission's file; the program of a sandboxed job of the judge.

Of the file only what kernels need is run: imports of Triton, functions under ``triton.jit``, and constants.
So a build depends on nothing but the file, the specialisation and Triton.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompilationError
from triton.language import dtype

from grader.runner.triton.ptx import WARP, end_with_ptx
from grader.runner.triton.specialisation import decoded

if TYPE_CHECKING:
    from collections.abc import Mapping

SPECIALISATION = "specialisation.json"
CODE, FACTS, REFUSED = "kernel", "facts.json", "refused"  # behind the form, as in ptx.kernel
_FACTS = ("name", "num_warps", "shared", "global_scratch_size", "profile_scratch_size")
_DEFINITION = re.compile(r"def (\w+)")
_QUOTED = re.compile(r"""\w+\(('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\)""")
_MODULES = frozenset({"__future__", "math", "triton"})


class MissingError(Exception):
    """The file has no such kernel."""


def main() -> None:
    """Compile a kernel of the file that the command line names, from the working folder to there.

    Behind the file it says what for: each form, ``ptx`` or ``cubin``, with the compute capability, as in
    ``cubin:90``. Those are built side by side, by a process each, and Triton is imported once.
    """
    file, *targets = sys.argv[1:]
    os.environ["TRITON_CACHE_DIR"] = str(Path("cache").resolve())
    described = json.loads(Path(SPECIALISATION).read_text())
    for target in targets:
        form, _, capability = target.partition(":")
        if os.fork() == 0:
            _write(file, described, form, int(capability))
            os._exit(0)
    ended = [os.waitstatus_to_exitcode(os.wait()[1]) for _target in targets]
    # Whoever gets neither a kernel nor a message learns that a signal ended the compiler.
    raise SystemExit(max(ended, key=abs))


def _write(file: str, described: dict[str, Any], form: str, capability: int) -> None:
    """Build for one target, and write the kernel, or why there is none."""
    if form == "ptx":
        knobs.runtime.add_stages_inspection_hook = end_with_ptx
    try:
        built = compiled(file, described, capability)
    except Exception as error:
        Path(f"{form}.{REFUSED}").write_text(_told(error, described, file))
        raise SystemExit from error
    Path(f"{form}.{CODE}").write_bytes(built.kernel)
    facts = {name: getattr(built.metadata, name) for name in _FACTS}
    facts["descriptors"] = bool(built.metadata.tensordesc_meta)
    Path(f"{form}.{FACTS}").write_text(json.dumps(facts))


def compiled(file: str, described: dict[str, Any], capability: int) -> Any:  # noqa: ANN401 (Triton's)
    """A kernel of ``file`` for a specialisation and a compute capability.

    Raises:
        MissingError: the file has no such kernel.
        Exception: whatever Triton raises.
    """
    functions = kernels(Path(file).read_text(), file)

    def find(name: str) -> Any:  # noqa: ANN401
        if name not in functions:
            raise MissingError(f"there is no function {name} under @triton.jit at its top level")
        return functions[name]

    kernel = find(described["kernel"])
    signature, constants, attributes, options = decoded(described, find, dtype)
    source = ASTSource(kernel, signature, constants, attributes)
    return triton.compile(source, target=GPUTarget("cuda", capability, WARP), options=options)


def _told(error: Exception, described: dict[str, Any], file: str) -> str:
    """What is wrong, with its line; if a function that the kernel calls is wrong, that of the innermost."""
    if not isinstance(error, CompilationError):
        return f"{file}: a kernel cannot be built: {error}"
    while isinstance(error.__cause__, CompilationError):
        error = error.__cause__
    known = vars(error)
    nodes = ast.parse(Path(file).read_text()).body
    lines = {node.name: node.lineno for node in nodes if isinstance(node, ast.FunctionDef)}
    function, offset = _DEFINITION.match(known["src"] or ""), getattr(known["node"], "lineno", 0)
    first = lines.get(function[1], 0) if function else 0
    place = f"{file}:{first + offset - 1}" if first and offset else file
    why = _unquoted(str(known["error_message"]))
    return f"{place}: the kernel {described['kernel']} does not compile: {why}"


def _unquoted(text: str) -> str:
    """The message of an error that Triton gives with its type, as in ``NameError('x is not defined')``."""
    quoted = _QUOTED.fullmatch(text)
    return str(ast.literal_eval(quoted[1])) if quoted else text


def kernels(text: str, file: str) -> Mapping[str, Any]:
    """The functions under ``triton.jit`` at the top level of ``file``, by name."""
    tree = ast.parse(text, file)
    tree.body = [node for node in tree.body if _needed(node)]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):  # such as autotuning, which is the runner's
            node.decorator_list = [one for one in node.decorator_list if _is_jit(one)]
    found: dict[str, Any] = {"__name__": "submission"}
    exec(compile(tree, file, "exec"), found)  # noqa: S102 - in a sandbox, which is what this program is for
    return found


def _needed(node: ast.stmt) -> bool:
    match node:
        case ast.Import():
            node.names = [name for name in node.names if name.name.partition(".")[0] in _MODULES]
            return bool(node.names)
        case ast.ImportFrom():
            return (node.module or "").partition(".")[0] in _MODULES
        case ast.FunctionDef():
            return any(map(_is_jit, node.decorator_list))
        case ast.Assign() | ast.AnnAssign():
            return node.value is not None and _is_constant(node.value)
    return False


def _is_jit(decorator: ast.expr) -> bool:
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(named).rpartition(".")[2] == "jit"


def _is_constant(value: ast.expr) -> bool:
    """Whether a value consists of numbers, names and calls of Triton or mathematics."""
    return not any(
        isinstance(node, ast.Call)
        and ast.unparse(node.func).partition(".")[0] not in {"tl", "triton", "math", "float", "int"}
        for node in ast.walk(value)
    )
