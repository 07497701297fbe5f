"""The texts of kernels that a Python file compiles when it runs, read and not run."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from grader.languages.inline.constants import SourceError, Text, plain
from grader.runner.inlined import key_of_kernels, texts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from grader.languages.inline.constants import Constants

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Kernels:
    """A text of kernels that a file compiles.

    Attributes:
        line: of the call.
        called: the function that is called for it.
        text: what is compiled.
        cuda_flags: for the compiler.
        expressions: names of instances of templates that Python asks for, such as ``sum<float>``.
        headers, wrapped, cpp_flags: see ``Module``.
    """

    line: int
    called: str
    text: Text
    cuda_flags: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()

    headers = "kernels.h"
    wrapped = ("__cudaRegisterFunction",)
    cpp_flags = ()

    @property
    def key(self) -> str:
        """The name of what it is built to."""
        return key_of_kernels(self.text.content, self.cuda_flags)

    def sources(self, file: str) -> Mapping[str, bytes]:
        """The files to compile: the text with its instances, and what launches them; see ``Module``."""
        instances = [
            f'#line {self.line} "{file}"\n'
            f'extern "C" __attribute__((visibility("default"))) const void* grader_instance_{number}() '
            f"{{ return reinterpret_cast<const void*>(&{expression}); }}"
            for number, expression in enumerate(self.expressions)
        ]
        names = ", ".join(f'"{_quoted(expression)}"' for expression in (*self.expressions, ""))
        main = ["#include <grader/kernels.h>", f"constexpr const char* instances[] = {{{names}}};"]
        main += [
            "GRADER_EXPORT const char* grader_instance(std::size_t index) {",
            f"  return index < {len(self.expressions)} ? instances[index] : nullptr;",
            "}",
            "",
        ]
        cuda = [self.text.placed(file), *instances, ""]
        return {"main.cpp": "\n".join(main).encode(), "cuda.cu": "\n".join(cuda).encode()}


def calls(tree: ast.Module, functions: Collection[str]) -> list[tuple[str, ast.Call]]:
    """The calls of functions of these names in a file, in order, with the name of each."""
    called = [(_called(node), node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return sorted(
        ((name, call) for name, call in called if name in functions),
        key=lambda pair: (pair[1].lineno, pair[1].col_offset),
    )


def _called(call: ast.Call) -> str:
    """The name of the function that is called; "" where it has none."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def text(constants: Constants, call: ast.Call, called: str, name: str, node: ast.expr) -> Text:
    """The text that a parameter gets.

    Raises:
        SourceError: it gets none, or it is known only when the file runs.
    """
    read = constants.read(call, called, name, node)
    if not isinstance(read, Text):
        raise SourceError(call.lineno, f"{called} gets {plain(read)!r} as {name}, which is no text")
    return read


def listed(
    constants: Constants, call: ast.Call, called: str, name: str, node: ast.expr | None
) -> tuple[str, ...]:
    """The texts that a parameter gets, or that is a text; none where it gets nothing.

    Raises:
        SourceError: they are known only when the file runs.
    """
    return () if node is None else tuple(texts(plain(constants.read(call, called, name, node))))


def merged(kernels: Iterable[Kernels]) -> tuple[Kernels, ...]:
    """Texts, each of which is built once, with all instances that are asked for."""
    by_key: dict[str, Kernels] = {}
    for each in kernels:
        first = by_key.setdefault(each.key, each)
        expressions = tuple(dict.fromkeys((*first.expressions, *each.expressions)))
        by_key[each.key] = replace(first, expressions=expressions)
    return tuple(by_key.values())


def with_instances(kernels: Iterable[Kernels], expressions: Iterable[str]) -> list[Kernels]:
    """Texts with those instances whose template's name stands in them."""
    return [
        replace(each, expressions=tuple(name for name in expressions if _template(name, each.text.content)))
        for each in kernels
    ]


def _quoted(text: str) -> str:
    """A text within a literal of C++."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def _template(expression: str, content: str) -> bool:
    """Whether the function that an expression begins with is named in a text."""
    names = _IDENTIFIER.findall(expression.partition("<")[0])
    return bool(names) and re.search(rf"\b{names[-1]}\b", content) is not None
