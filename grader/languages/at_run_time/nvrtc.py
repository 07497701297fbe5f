"""What a Python file compiles by NVRTC, through ``cuda.core``: programs, and instances of templates."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from grader.languages.at_run_time.kernels import Kernels, calls, listed, merged, text, with_instances
from grader.languages.inline.constants import Constants, SourceError, parameters, plain
from grader.runner.inlined import FLAGS, flags_of_program

if TYPE_CHECKING:
    from collections.abc import Mapping

_PROGRAM, _COMPILE, _OPTIONS = "Program", "compile", "ProgramOptions"
_OF_PROGRAM = ("code", "code_type", "options")
_OF_COMPILE = ("target_type", "name_expressions", "logs")

_NAMES = ("Device", "Kernel", "LaunchConfig", "ObjectCode", _PROGRAM, _OPTIONS, "Stream", "launch")
MODULES = {"cuda": (), "cuda.core": _NAMES, "cuda.core.experimental": _NAMES}
"""What a file may use of it."""

ATTRIBUTES = frozenset(
    {
        *("allocate", "arch", "close", "compile", "compute_capability", "create_stream", "default_stream"),
        *("device_id", "from_handle", "get_kernel", "handle", "set_current", "sync"),
    }
)


def kernels(tree: ast.Module, content: bytes) -> tuple[Kernels, ...]:
    """The texts that a file compiles.

    Raises:
        SourceError: a call cannot be built from what the file says.
    """
    constants = Constants(tree, content)
    programs = [_program(constants, call) for _, call in calls(tree, (_PROGRAM,))]
    expressions: dict[str, None] = {}
    for _, call in calls(tree, (_COMPILE,)):
        nodes = parameters(call, _COMPILE, _OF_COMPILE)
        names = listed(constants, call, _COMPILE, "name_expressions", nodes.get("name_expressions"))
        expressions |= dict.fromkeys(names)
    return merged(with_instances(programs, expressions))


def _program(constants: Constants, call: ast.Call) -> Kernels:
    nodes = parameters(call, _PROGRAM, _OF_PROGRAM)
    if "code" not in nodes:
        raise SourceError(call.lineno, "Program gets no code: write the text of the kernels there")
    code = text(constants, call, _PROGRAM, "code", nodes["code"])
    options = _options(constants, call, nodes["options"]) if "options" in nodes else {}
    return Kernels(call.lineno, _PROGRAM, code, tuple(flags_of_program(options)))


def _options(constants: Constants, call: ast.Call, node: ast.expr) -> Mapping[str, object]:
    """Those of the options of a program that say what is built.

    Raises:
        SourceError: they are known only when the file runs.
    """
    match constants.bound(node):
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[]) as made if name == _OPTIONS:
            words = {word.arg: word.value for word in made.keywords if word.arg in FLAGS}
            return {
                name: _shaped(constants.bound(value), plain(constants.read(made, _OPTIONS, name, value)))
                for name, value in words.items()
                if name is not None
            }
    raise SourceError(
        call.lineno, f"Program gets options from {ast.unparse(node)[:60]}: write ProgramOptions(...) there"
    )


def _shaped(node: ast.expr, value: object) -> object:
    """A constant with its tuples, which mean something else than lists do."""
    match node, value:
        case ast.Tuple(), list():
            return tuple(value)
        case ast.List(elts=parts), list():
            return [_shaped(part, element) for part, element in zip(parts, value, strict=True)]
    return value
