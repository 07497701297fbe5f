"""The names that a C++ compiler gives functions, as far as they are read here: ``_ZN3one3kerEv`` is ``ker``.

Layer: standard library only.
"""

from __future__ import annotations

import re

_MANGLED = re.compile(r"_Z(?P<nested>N?)(?P<names>\d.*)")
_LENGTH = re.compile(r"\d{1,4}")


def last_name(names: str, *, nested: bool) -> tuple[str, str]:
    """The last of names that each follow their length, and what comes behind it.

    Args:
        names: begins with a length.
        nested: whether names of namespaces may come first; else the first name is the last.
    """
    last = ""
    while length := _LENGTH.match(names):
        end = length.end() + int(length[0])
        last, names = names[length.end() : end], names[end:]
        if not nested:
            break
    return last, names


def unmangled(name: str) -> str:
    """The name of a C++ function without its namespaces; ``name`` itself where it is none."""
    match = _MANGLED.fullmatch(name)
    if match is None:
        return name
    last, rest = last_name(match["names"], nested=bool(match["nested"]))
    return last if not match["nested"] or rest.startswith("E") else name
