"""Compiles one kernel of a submission's file; the program of a sandboxed job of the judge.

Of the file only what kernels need is run: functions under ``triton.jit``, and the statements that bind the
names which these use, directly or through others. So a build depends on nothing but the file, the
specialisation and Triton, and a module that no kernel needs is not imported.
"""

from __future__ import annotations

import ast
import fcntl
import itertools
import json
import os
import re
import shutil
import symtable
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard

import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompilationError
from triton.language import dtype
from triton.runtime import cache

from grader.runner.protocol import Channel, ClosedError
from grader.runner.triton import task_types
from grader.runner.triton.ptx import WARP, end_with_ptx
from grader.runner.triton.specialisation import decoded

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

SPECIALISATION = "specialisation.json"
CODE, FACTS, REFUSED = "kernel", "facts.json", "refused"  # behind the form, as in ptx.kernel
_FACTS = ("name", "num_warps", "shared", "global_scratch_size", "profile_scratch_size")
_MODULE = "submission"
_DEFINITION = re.compile(r"def (\w+)")
_QUOTED = re.compile(r"""\w+\(('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\)""")


class MissingError(Exception):
    """The file has no such kernel."""


def main() -> None:
    """Compile kernels of the file that the command line names: one to the working folder, or many.

    The one is that of the specialisation in the working folder. Without it, there are those that whoever
    holds the other end of stdin and stdout asks for, and gets.

    Behind the file it says what for: each form, ``ptx`` or ``cubin``, with the compute capability, as in
    ``cubin:90``. Those are built side by side, by a process each, and Triton is imported once.
    """
    file, *targets = sys.argv[1:]
    cache.triton_key = lambda: ""  # else it reads all of Triton, to tell the versions in a cache apart
    if not Path(SPECIALISATION).exists():
        _answer(file, targets)
        return
    ended = _all(file, json.loads(Path(SPECIALISATION).read_text()), targets, Path())
    # Whoever gets neither a kernel nor a message learns that a signal ended the compiler.
    raise SystemExit(max(ended, key=abs))


def _answer(file: str, targets: Sequence[str]) -> None:
    """Compile kernels until nobody asks for more."""
    reading, writing = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 10) for number in (0, 1))
    channel = Channel(reading, writing)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what a file prints is no answer
    source = Path(file).read_bytes()  # code of the file may change what lies here
    for number in itertools.count():
        try:
            request = channel.receive(0).header
        except ClosedError:
            return
        folder = Path(f"kernel-{number}")
        folder.mkdir()
        (folder / file).write_bytes(source)
        _all(file, request["specialisation"], targets, folder)
        names = [f"{form}.{part}" for form in _forms(targets) for part in (CODE, FACTS, REFUSED)]
        parts = {name: (folder / name).read_bytes() for name in names if (folder / name).is_file()}
        shutil.rmtree(folder)
        sizes = [[name, len(content)] for name, content in parts.items()]
        channel.send({"nonce": request["nonce"], "sizes": sizes}, list(parts.values()))


def _forms(targets: Sequence[str]) -> list[str]:
    return [target.partition(":")[0] for target in targets]


def _all(file: str, described: dict[str, Any], targets: Sequence[str], folder: Path) -> list[int]:
    """Build for all targets in a folder; returns how each process ended."""
    for target in targets:
        form, _, capability = target.partition(":")
        if os.fork() == 0:
            os.chdir(folder)
            os.environ["TRITON_CACHE_DIR"] = str(Path("cache").resolve())
            _write(file, described, form, int(capability))
            os._exit(0)
    return [os.waitstatus_to_exitcode(os.wait()[1]) for _target in targets]


def _write(file: str, described: dict[str, Any], form: str, capability: int) -> None:
    """Build for one target, and write the kernel, or why there is none."""
    if form == "ptx":
        knobs.runtime.add_stages_inspection_hook = end_with_ptx
    try:
        built = compiled(file, described, capability)
    except Exception as error:
        Path(f"{form}.{REFUSED}").write_text(_message(error, described, file))
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


def _message(error: Exception, described: dict[str, Any], file: str) -> str:
    """The message of a failed build with its line, which is that of the innermost function that fails."""
    if not isinstance(error, CompilationError):
        return f"{file}: a kernel cannot be built: {error}"
    while isinstance(error.__cause__, CompilationError):
        error = error.__cause__
    details = vars(error)
    nodes = ast.parse(Path(file).read_text()).body
    lines = {node.name: node.lineno for node in nodes if isinstance(node, ast.FunctionDef)}
    function, offset = _DEFINITION.match(details["src"] or ""), getattr(details["node"], "lineno", 0)
    first = lines.get(function[1], 0) if function else 0
    line = f"{file}:{first + offset - 1}" if first and offset else file
    why = _unquoted(str(details["error_message"]))
    return f"{line}: the kernel {described['kernel']} does not compile: {why}"


def _unquoted(text: str) -> str:
    """The message of an error that Triton gives with its type, as in ``NameError('x is not defined')``."""
    quoted = _QUOTED.fullmatch(text)
    return str(ast.literal_eval(quoted[1])) if quoted else text


def kernels(text: str, file: str) -> Mapping[str, Any]:
    """The functions under ``triton.jit`` at the top level of ``file``, by name."""
    tree = ast.parse(text, file)
    for node in tree.body:
        if _is_kernel(node):  # the runner does the rest, such as autotuning
            node.decorator_list = [decorator for decorator in node.decorator_list if _is_jit(decorator)]
    tree.body = _needed(tree.body)
    task_types.define()
    sys.modules[_MODULE] = module = ModuleType(_MODULE)  # where dataclasses look for their types
    exec(compile(tree, file, "exec"), vars(module))  # noqa: S102 - what this sandboxed program is for
    return vars(module)


@dataclass(frozen=True)
class _Statement:
    """A statement at the top level, with the names of the module that it uses, and those that it binds."""

    node: ast.stmt
    used: frozenset[str]
    bound: frozenset[str]


def _needed(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The kernels, and what binds the names that are used in them or in other statements that are needed."""
    statements = [_statement(node) for node in body if not _is_main(node)]
    needed = [each for each in statements if _is_kernel(each.node) or _is_from_future(each.node)]
    before: frozenset[str] | None = None
    names: frozenset[str] = frozenset()
    while names != before:
        before, names = names, names.union(*(each.used for each in needed))
        needed = [each for each in statements if each in needed or not names.isdisjoint(each.bound)]
    return [_without_others(each.node, names) for each in needed]


def _statement(node: ast.stmt) -> _Statement:
    """What a statement uses, binds and changes, without the variables of the functions in it.

    A launcher calls its tensors as the kernel calls its arguments: to take one for the other would run the
    launcher's imports, too, and to import PyTorch takes as long as to build three kernels.
    """
    module = symtable.symtable(ast.unparse(node), _MODULE, "exec")
    used, bound = set(), set()
    for scope in _scopes(module):
        for symbol in scope.get_symbols():
            if scope is module or symbol.is_global():
                if symbol.is_referenced():
                    used.add(symbol.get_name())
                if symbol.is_assigned() or symbol.is_imported():
                    bound.add(symbol.get_name())
    return _Statement(node, frozenset(used), frozenset({*bound, *used.intersection(_changed(node))}))


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """A table of names and those within it."""
    yield table
    for child in table.get_children():
        yield from _scopes(child)


def _changed(node: ast.stmt) -> Iterator[str]:
    """The names of values of which a statement changes an attribute or an element."""
    for child in ast.walk(node):
        match child:
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                yield from (name.id for name in ast.walk(child.value) if isinstance(name, ast.Name))


def _without_others(node: ast.stmt, names: Collection[str]) -> ast.stmt:
    """An import without what no kernel needs, which may be missing where kernels are compiled."""
    match node:
        case ast.Import() | ast.ImportFrom() if not _is_from_future(node):
            node.names = [
                alias for alias in node.names if (alias.asname or alias.name.partition(".")[0]) in names
            ]
    return node


def _is_kernel(node: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    return isinstance(node, ast.FunctionDef) and any(map(_is_jit, node.decorator_list))


def _is_jit(decorator: ast.expr) -> bool:
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(named).rpartition(".")[2] == "jit"


def _is_from_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"
