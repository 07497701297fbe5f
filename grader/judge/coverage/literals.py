"""The whole numbers that a source is written with, such as the length of an array or a cap on a grid."""

from __future__ import annotations

import re

_SKIPPED = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_LITERAL = re.compile(
    r"(?<![\w.])(0[xX][0-9a-fA-F']+|[0-9][0-9']*)(?:[uU]?[lL]{0,2}|[lL]{1,2}[uU])(?![\w.])"
    r"(?:\s*(<<|\*)\s*(\d+)(?![\w.]))?"
)
_MOST = 1 << 40


def literals(source: str, comment: str = "//") -> frozenset[int]:
    """The numbers of a source in C++ or, with another sign before comments, in Python.

    Of ``1 << 20`` and ``4 * 1024`` the result is among them, too.
    """
    text = source if comment == "//" else re.sub(rf"{comment}[^\n]*", "", source)
    numbers: set[int] = set()
    for match in _LITERAL.finditer(_SKIPPED.sub(" ", text) if comment == "//" else text):
        digits = match[1].replace("'", "")
        number = int(digits, 16 if digits[:2] in {"0x", "0X"} else 10)
        numbers.add(number)
        if match[2]:
            other = int(match[3])
            numbers |= {other, number * other if match[2] == "*" else number << min(other, 64)}
    return frozenset(number for number in numbers if number <= _MOST)
