"""What a submission's Python file says, read and not run: its functions, and how they are called."""

from __future__ import annotations

import ast
import difflib
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING

from grader.devices.device import Memory
from grader.languages.language import EntryPoint, Launcher, LauncherError
from grader.problems.module import ModuleProblem
from grader.problems.problem import ArrayParameter, ScalarParameter, StreamParameter, called_once

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from grader.problems.problem import KernelProblem, Parameter

_IMPORTS = {"torch.utils.cpp_extension": "load_inline", "cupy": "cupy", "cuda": "nvrtc"}
"""Modules by which a file compiles kernels that are not in Triton, and the language that they are in then."""
_SIZES = frozenset({"int", "long", "longs"})


@dataclass(frozen=True)
class Function:
    """A function at the top level of a file; ``begun`` if it does more than raise NotImplementedError.

    Of a class whose ``forward`` is called, the parameters are those of ``__init__``, then those of
    ``forward``, both without the object.
    """

    name: str
    parameters: tuple[str, ...]
    line: int
    begun: bool = True


def translated(problem: KernelProblem) -> KernelProblem:
    """``problem`` for a file of its name with ``.py``, with one function of the problem's own name.

    Launchers that are called one after the other keep their names. A module problem says both itself.
    """
    if isinstance(problem, ModuleProblem):
        return problem
    name = PurePath(problem.file).with_suffix(".py").name
    if problem.calls is not called_once:
        launchers = {key: replace(launcher, file=name) for key, launcher in problem.launchers.items()}
        return replace(problem, file=name, launchers=launchers)
    return replace(
        problem,
        file=name,
        entry_point=problem.id,
        launchers={dtype: translated(typed) for dtype, typed in problem.launchers.items()},
    )


@lru_cache(maxsize=64)
def parsed(content: bytes, file: str) -> ast.Module:
    """The syntax tree of a file.

    Raises:
        SyntaxError: it is no Python.
    """
    try:
        return ast.parse(content, file)
    except ValueError as error:  # of a null byte
        raise SyntaxError(str(error)) from error


def imports(tree: ast.Module, module: str) -> int:
    """The line in which a file imports ``module`` or a part of it; 0 where it does not."""
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        if any(f"{name}.".startswith(f"{module}.") for name in names):
            return node.lineno if isinstance(node, ast.stmt) else 0
    return 0


def language(content: bytes, file: str) -> str:
    """The language of a file, by what it imports; that of one that is no Python is Triton."""
    try:
        tree = parsed(content, file)
    except SyntaxError:
        return "triton"
    return next((name for module, name in _IMPORTS.items() if imports(tree, module)), "triton")


def functions(tree: ast.Module) -> tuple[Function, ...]:
    """The functions at the top level, without kernels, and the classes with a method ``forward``."""
    called = (_called(node) for node in tree.body)
    return tuple(function for function in called if function is not None)


def _called(node: ast.stmt) -> Function | None:
    """The function, or the class, that a statement defines and that can be called; None where it is none."""
    match node:
        case ast.FunctionDef(name=name):
            return Function(name, _parameters(node), node.lineno, _is_begun(node))
        case ast.ClassDef(name=name):
            methods = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}
            if "forward" in methods:
                both = [_parameters(methods[part])[1:] for part in ("__init__", "forward") if part in methods]
                return Function(name, sum(both, ()), node.lineno, _is_begun(methods["forward"]))
    return None


def _parameters(node: ast.FunctionDef) -> tuple[str, ...]:
    """The names of the parameters by position."""
    return tuple(argument.arg for argument in (*node.args.posonlyargs, *node.args.args))


def function(content: bytes, file: str, name: str) -> Function | None:
    """The function ``name`` of a file; in one that is no Python, what looks like it."""
    try:
        return next(
            (function for function in functions(parsed(content, file)) if function.name == name), None
        )
    except SyntaxError:
        match = re.search(rf"^def {name}\b", content.decode(errors="replace"), re.MULTILINE)
        return Function(name, (), 0) if match else None


def _is_begun(node: ast.FunctionDef) -> bool:
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    match body:
        case [ast.Raise(exc=ast.Name("NotImplementedError") | ast.Call(ast.Name("NotImplementedError")))]:
            return False
    return True


def find(tree: ast.Module, file: str, entry_point: str, further: Collection[str]) -> EntryPoint:
    """The function ``entry_point`` of ``file``, or why it cannot be called."""
    names = [function.name for function in functions(tree)]
    if entry_point in names:
        return EntryPoint(entry_point)
    near = difflib.get_close_matches(entry_point, [name for name in names if name not in further], n=1)
    hint = f" Found {near[0]}: rename it to {entry_point}." if near else ""
    return EntryPoint("", f"{file} has no function {entry_point} at its top level.{hint}")


def launcher(problem: KernelProblem, function: Function, file: str) -> Launcher:
    """How a function is called: with arrays and what is no size in the problem's order, or all by name.

    Raises:
        LauncherError: its parameters are neither.
    """
    if isinstance(problem, ModuleProblem):
        return _of_module(problem, function, file)
    if problem.structs:
        raise LauncherError(
            f"{function.name} ({file}:{function.line}) would take structs, which Triton lacks: answer it "
            "in CUDA"
        )
    parameters = tuple(
        parameter for parameter in problem.parameters if not isinstance(parameter, StreamParameter)
    )
    needed = tuple(parameter for parameter in parameters if not _is_size(parameter))
    by_name = _by_name(parameters, needed, function.parameters)
    if by_name is None and len(function.parameters) != len(needed):
        raise LauncherError(
            f"{function.name} ({file}:{function.line}) takes {', '.join(function.parameters) or 'nothing'}. "
            f"Give it {', '.join(parameter.name for parameter in needed)}; sizes are those of the tensors."
        )
    return Launcher(replace(problem, parameters=by_name or needed), Memory.DEVICE, ())


def _of_module(problem: ModuleProblem, function: Function, file: str) -> Launcher:
    """How the function of a module problem is called: with all that it is given, or with a tuple of that.

    Raises:
        LauncherError: it takes another number of parameters.
    """
    passed = ", ".join(problem.passed)
    count = 1 if problem.packed else len(problem.passed) - len(problem.weights)
    if len(function.parameters) != count:
        asked = f"one parameter, the tuple ({passed})" if problem.packed else passed
        if problem.initial is not None:
            initial = ", ".join(problem.passed[: problem.initial]) or "nothing more than the object"
            asked = f"{initial} in __init__, and {', '.join(problem.forwarded)} in forward"
        raise LauncherError(
            f"{function.name} ({file}:{function.line}) takes {', '.join(function.parameters) or 'nothing'}. "
            f"Give it {asked}."
        )
    return Launcher(problem, Memory.DEVICE, ())


def _by_name(
    parameters: Sequence[Parameter], needed: Sequence[Parameter], names: Sequence[str]
) -> tuple[Parameter, ...] | None:
    """The parameters of these names, if they are all known and nothing that is needed is missing."""
    by_name: dict[str, Parameter] = {parameter.name: parameter for parameter in parameters}
    by_name |= {
        other: parameter
        for parameter in parameters
        if isinstance(parameter, ArrayParameter)
        for other in parameter.other_names
    }
    order = tuple(by_name[name] for name in names if name in by_name)
    complete = all(
        parameter in order or (isinstance(parameter, ArrayParameter) and parameter.optional)
        for parameter in needed
    )
    return order if complete and len(order) == len(names) else None


def _is_size(parameter: Parameter) -> bool:
    return isinstance(parameter, ScalarParameter) and parameter.ctype in _SIZES
