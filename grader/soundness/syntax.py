"""What operators look for in the tree of a source: expressions, calls, launches and what declarations tell.

Layer: imports the parser alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

    from grader.soundness.edits import Source


def binaries(
    source: Source, signs: Mapping[str, str] | frozenset[str] | set[str]
) -> Iterator[tuple[Node, Node, Node, Node]]:
    """Binary expressions with one of ``signs``: the whole, the sign, both sides."""
    for node in source.of("binary_expression"):
        left, right, sign = (node.child_by_field_name(name) for name in ("left", "right", "operator"))
        if left is not None and right is not None and sign is not None and source.text_of(sign) in signs:
            yield node, sign, left, right


def assignments(source: Source) -> Iterator[tuple[Node, Node, Node, Node]]:
    """Assignments of any kind: the whole, the sign, both sides."""
    for node in source.of("assignment_expression"):
        left, right, sign = (node.child_by_field_name(name) for name in ("left", "right", "operator"))
        if left is not None and right is not None and sign is not None:
            yield node, sign, left, right


def callee(source: Source, call: Node) -> str:
    """The name of the function or kernel that a call calls, with template arguments."""
    function = call.child_by_field_name("function")
    return "" if function is None else source.text_of(function)


def only_call(source: Source, statement: Node) -> str:
    """The name of the function that a statement calls and does nothing else; "" if there is none."""
    inner = statement.named_children[:1]
    return callee(source, inner[0]) if inner and inner[0].type == "call_expression" else ""


def arguments(call: Node) -> list[Node]:
    """The arguments of a call."""
    children = call.child_by_field_name("arguments")
    return [] if children is None else [child for child in children.named_children if child.type != "comment"]


def array_sizes(declarator: Node) -> Iterator[Node]:
    """The sizes of an array, the innermost first."""
    inner: Node | None = declarator
    while inner is not None and inner.type == "array_declarator":
        size = inner.child_by_field_name("size")
        if size is not None:
            yield size
        inner = inner.child_by_field_name("declarator")


def configurations(source: Source) -> Iterator[list[Node]]:
    """For each launch, the values between its angle brackets."""
    for node in source.of("kernel_call_syntax"):
        yield [child for child in node.named_children if child.type != "comment"]


def floats(source: Source) -> Mapping[str, int]:
    """The variables, parameters and members of type float by name, with how many indices lead to one."""
    indices = {}
    for node in source.of("declaration", "parameter_declaration", "field_declaration"):
        kind = node.child_by_field_name("type")
        if kind is None or source.text_of(kind) != "float":
            continue
        for declarator in node.children_by_field_name("declarator"):
            text = source.text_of(declarator).partition("=")[0]
            if name := re.search(r"\w+", text.replace("__restrict__", "")):
                indices[name[0]] = text.count("[") + text.count("*")
    return indices
