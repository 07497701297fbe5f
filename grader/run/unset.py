"""Local variables of CUDA sources that are added to before anything sets them, as their text shows.

Such a variable may hold any number, and the compiler says nothing of it. No reading of text knows all of C++:
only what is plain counts, a variable without a value whose first mention adds to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^[ \t]*#(?:\\\n|[^\n])*', re.DOTALL | re.MULTILINE
)
_FUNCTION = re.compile(r"\b(?P<name>[A-Za-z_]\w*)\s*\([^;{}]*\)\s*(?:const\s*|noexcept\s*)?\{")
_NOT_FUNCTIONS = frozenset({"if", "for", "while", "switch", "catch"})
_DECLARED = re.compile(
    r"(?<=[;{}])\s*(?:(?:unsigned|signed)\s+)?"
    r"(?:float|double|int|unsigned|long\s+long|long|short|size_t|u?int\d+_t|half|__half|(?:__)?nv_bfloat16|__nv_fp8_e[45]m[23])\s+"
    r"(?P<names>[A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s*;"
)
_ADDED_TO = re.compile(r"\s*(?:[-+*/]=|\+\+|--)")
_ASSIGNED = re.compile(r"\s*=(?!=)(?P<value>[^;]*);")
_ELSE = re.compile(r"[^;]*;\s*\}?\s*else\b")


@dataclass(frozen=True)
class Unset:
    """A variable, and the file and line that declare it."""

    name: str
    file: str
    line: int


def unset_variables(sources: Mapping[str, bytes], entry_point: str) -> list[Unset]:
    """Those in the functions that ``entry_point`` reaches, by name, in the order of the sources."""
    texts = {
        file: _NO_CODE.sub(_blank, content.decode(errors="replace"))
        for file, content in sources.items()
        if PurePath(file).suffix != ".py"
    }
    functions = [(name, file, span) for file, text in texts.items() for name, span in _functions(text)]
    words = {
        (file, span): set(re.findall(r"[A-Za-z_]\w*", texts[file][slice(*span)]))
        for _, file, span in functions
    }
    reached, wanted = set[str](), {entry_point}
    while wanted:
        reached |= wanted
        wanted = {
            word
            for name, file, span in functions
            if name in wanted
            for word in words[file, span] & {other for other, _, _ in functions}
        } - reached
    return [
        Unset(name, file, texts[file].count("\n", 0, place) + 1)
        for function, file, span in functions
        if function in reached
        for name, place in _unset(texts[file], *span)
    ]


def _blank(match: re.Match[str]) -> str:
    """As many lines without anything."""
    return "\n" * match[0].count("\n") or " "


def _functions(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """The names of functions, and where their bodies are, from brace to brace."""
    end = 0
    for match in _FUNCTION.finditer(text):
        if match.start() >= end and match["name"] not in _NOT_FUNCTIONS:
            end = _end_of_block(text, match.end())
            yield match["name"], (match.end() - 1, end)


def _end_of_block(text: str, begin: int) -> int:
    """Where the block ends that is open at ``begin``."""
    depth = 1
    for match in re.compile("[{}]").finditer(text, begin):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
    return len(text)


def _unset(text: str, begin: int, end: int) -> Iterator[tuple[str, int]]:
    """The variables of a function, each with the place of its declaration."""
    for declaration in _DECLARED.finditer(text, begin, end):
        scope = text[declaration.end() : _end_of_block(text, declaration.end())]
        for name in re.split(r"\s*,\s*", declaration["names"]):
            mention = re.search(rf"(?<![\w.>:]){name}\b", scope)
            if mention and _is_read(scope, name, mention.end()):
                yield name, declaration.start("names")


def _is_read(scope: str, name: str, place: int) -> bool:
    """Whether the first mention, which ends at ``place``, needs a value that nothing has set."""
    assigned = _ASSIGNED.match(scope, place)
    if assigned:
        return re.search(rf"(?<![\w.>:&]){name}\b", assigned["value"]) is not None
    if not _ADDED_TO.match(scope, place) or _ELSE.match(scope, place):
        return False
    # In a loop, what is set behind it may come before it in time.
    before = scope[:place]
    open_blocks = before.count("{") - before.count("}")
    within = scope[place:]
    for _ in range(open_blocks):
        place = _end_of_block(scope, place)
    inside = within[: place - len(before)] if open_blocks else ""
    return re.search(rf"(?<![\w.>:]){name}\s*=(?!=)", inside) is None
