"""The numbers that a source is written with, such as the length of an array, a cap on a grid, a mark."""

from __future__ import annotations

import re

import numpy as np

_SKIPPED = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_LITERAL = re.compile(
    r"(?<![\w.])(0[xX][0-9a-fA-F']+|[0-9][0-9']*)(?:[uU]?[lL]{0,2}|[lL]{1,2}[uU])(?![\w.])"
    r"(?:\s*(<<|\*)\s*(\d+)(?![\w.]))?"
)
_MARK = re.compile(
    r"(?<![\w.])(?:(?P<bits>0[xX][0-9a-fA-F']+)[uU]?[lL]{0,2}"
    r"|(?P<number>(?:\d[\d']*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[fF]?)(?![\w.])"
)
_NEGATIVE = re.compile(r"(?:[^\w\s)\]]|\breturn|^)\s*-\s*$")
_NEAR = 64  # characters ahead of a number, among which its sign stands
_MOST = 1 << 40
_USUAL = frozenset({0.0, 1.0, 0.5, 2.0})  # what arithmetic needs


def literals(source: str, comment: str = "//") -> frozenset[int]:
    """The numbers of a source in C++ or, with another sign before comments, in Python.

    Of ``1 << 20`` and ``4 * 1024`` the result is among them, too.
    """
    numbers: set[int] = set()
    for match in _LITERAL.finditer(_code(source, comment)):
        digits = match[1].replace("'", "")
        number = int(digits, 16 if digits[:2] in {"0x", "0X"} else 10)
        numbers.add(number)
        if match[2]:
            other = int(match[3])
            numbers |= {other, number * other if match[2] == "*" else number << min(other, 64)}
    return frozenset(number for number in numbers if number <= _MOST)


def marks(source: str, comment: str = "//") -> frozenset[float]:
    """The numbers of a source that may stand for "nothing yet" in an array, so that no data may equal them.

    These are the negative ones, those with a fraction or an exponent, and the float32 numbers whose bits are
    written in hexadecimal. None is infinite.
    """
    text = _code(source, comment)
    numbers: set[float] = set()
    for match in _MARK.finditer(text):
        if match["bits"]:
            bits = int(match["bits"][2:].replace("'", ""), 16)
            if 1 << 24 <= bits < 1 << 32:
                numbers.add(float(np.uint32(bits).view(np.float32)))
            continue
        digits = match["number"].replace("'", "")
        number = float(digits)
        if _NEGATIVE.search(text, max(0, match.start() - _NEAR), match.start()):
            numbers.add(-number)
        elif number not in _USUAL and not digits.isdigit():
            numbers.add(number)
    return frozenset(number for number in numbers if number and np.isfinite(number))


def _code(source: str, comment: str) -> str:
    """The source without comments and, in C++, without texts."""
    return _SKIPPED.sub(" ", source) if comment == "//" else re.sub(rf"{comment}[^\n]*", "", source)
