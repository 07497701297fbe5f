"""One small change of a source text, and the tree that operators find such changes in.

Places count characters. Tree-sitter counts bytes, so each character that is not ASCII is given to it as one.

Layer: imports the parser alone.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import tree_sitter_cuda
from tree_sitter import Language, Parser

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tree_sitter import Node

_LANGUAGE = Language(tree_sitter_cuda.language())
_LEFT_ALONE = frozenset({"preproc_def", "preproc_function_def", "static_assert_declaration", "comment"})
"""Nodes in which nothing is changed: macros stand elsewhere than where they act."""


@dataclass(frozen=True)
class Edit:
    """A change of the text from ``begin`` to ``end``.

    Attributes:
        operator: that it comes from.
        begin: the first character that is replaced.
        end: the one behind the last.
        old: what stands there.
        new: what replaces it.
        needs: what a case must have for the change to show, where that can be said.
    """

    operator: str
    begin: int
    end: int
    old: str
    new: str
    needs: str = ""

    def applied(self, text: str) -> str:
        """``text`` with the change."""
        return text[: self.begin] + self.new + text[self.end :]

    @property
    def reason(self) -> str:
        """The change, in words."""
        if not self.old.strip():
            return f"`{_short(self.new)}` comes in"
        return f"`{_short(self.old)}` becomes `{_short(self.new)}`"


def _short(text: str, most: int = 70) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


@dataclass(frozen=True)
class Source:
    """A text and its tree."""

    text: str

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, in the order of the text, without those that no operator may change."""
        root = Parser(_LANGUAGE).parse(self.text.encode("ascii", "replace")).root_node
        return tuple(_all(root))

    def of(self, *kinds: str) -> Iterator[Node]:
        """The nodes of these kinds."""
        return (node for node in self.nodes if node.type in kinds)

    def text_of(self, node: Node) -> str:
        """The text of a node."""
        return self.text[node.start_byte : node.end_byte]

    def replaced(self, operator: str, node: Node, new: str, needs: str = "") -> Edit:
        """The edit that puts ``new`` in the place of a node."""
        return Edit(operator, node.start_byte, node.end_byte, self.text_of(node), new, needs)

    def inserted(self, operator: str, offset: int, new: str, needs: str = "") -> Edit:
        """The edit that puts ``new`` at an offset in the text."""
        return Edit(operator, offset, offset, "", new, needs)

    def line(self, offset: int) -> int:
        """The line of an offset in the text, from 1."""
        return self.text.count("\n", 0, offset) + 1

    def keys(self, file: str, edits: Iterable[Edit]) -> Iterator[str]:
        """A name for each edit that stays while other lines change; edits that are alike are counted."""
        lines = self.text.split("\n")
        counts: Counter[tuple[str, ...]] = Counter()
        for edit in edits:
            alike = (file, edit.operator, lines[self.line(edit.begin) - 1].strip(), edit.old, edit.new)
            counts[alike] += 1
            yield hashlib.sha256("\0".join((*alike, str(counts[alike]))).encode()).hexdigest()[:10]


def function_around(source: Source, edit: Edit) -> Node | None:
    """The innermost function definition that an edit is in."""
    around = [
        node
        for node in source.of("function_definition")
        if node.start_byte <= edit.begin and edit.end <= node.end_byte
    ]
    return around[-1] if around else None


def runs_on_device_alone(source: Source, edit: Edit) -> bool:
    """Whether an edit is in a function of the device, so that no host code changes."""
    function = function_around(source, edit)
    body = None if function is None else function.child_by_field_name("body")
    if function is None or body is None:
        return False
    head = source.text[function.start_byte : body.start_byte]
    return ("__device__" in head or "__global__" in head) and "__host__" not in head


def _all(node: Node) -> Iterator[Node]:
    pending = [node]
    while pending:
        current = pending.pop()
        if current.type in _LEFT_ALONE:
            continue
        yield current
        pending += reversed(current.children)
