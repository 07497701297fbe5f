"""The one reader of names that a C++ compiler has mangled: ``_ZN3one3kerIfEEvPT_`` is ``one::ker<float>``.

It is Python code, since students choose the names: a compiled demangler outside of a sandbox is a way in.
"""

from __future__ import annotations

import re

import itanium_demangler

_MOST = 128  # characters of a name that is read as a whole: every ten of them can double what they stand for
_NOT_UNDERSTOOD = (NotImplementedError, AttributeError, IndexError, RecursionError, TypeError)
"""What the demangler raises over names that it does not know and that no compiler makes."""

_OWN = re.compile(r"_Z(?P<nested>N?)(?P<names>\d\w*)")
_LENGTH = re.compile(r"\d{1,4}")


def demangled(name: str) -> str:
    """A C++ name as it is written, without parameters; ``name`` itself where that cannot be read."""
    if len(name) > _MOST:
        return name
    try:
        node = itanium_demangler.parse(name)
        readable = "" if node is None else str(node.name if node.kind == "func" else node)
    except _NOT_UNDERSTOOD:
        return name
    return readable if 0 < len(readable) <= _MOST else name


def own_name(name: str) -> str:
    """The name of a function without namespaces, template arguments and parameters, however long it is."""
    match = _OWN.fullmatch(name)
    if match is None:
        return name
    last, names = "", match["names"]
    while length := _LENGTH.match(names):
        end = length.end() + int(length[0])
        last, names = names[length.end() : end], names[end:]
        if not match["nested"]:
            break
    return last


def own_names_in(text: str) -> str:
    """The text with each mangled name of a function replaced by its own name."""
    return re.sub(rf"\b{_OWN.pattern}", lambda match: own_name(match[0]), text)
