"""Floating-point arithmetic with exact rational numbers, rounded once: what IEEE 754 asks of every format.

Values are Python's floats, which hold those of every format here.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable


class Format:
    """A binary format: rounds exact values in any direction."""

    def __init__(self, precision: int, exponent_bits: int) -> None:
        self.precision = precision
        self.top = (1 << (exponent_bits - 1)) - 1
        self.bottom = 2 - (1 << (exponent_bits - 1))

    def round(self, value: Fraction, mode: str, *, flushed: bool = False) -> float:
        """The value as this format holds it, as a float; a zero is positive.

        ``flushed`` is how .ftz rounds: as if there were no least exponent, and what is then below the
        smallest normal number becomes zero.
        """
        if value == 0:
            return 0.0
        size = abs(value)
        exponent = floor_log2(size) if flushed else max(floor_log2(size), self.bottom)
        unit = Fraction(2) ** (exponent - self.precision + 1)
        steps, rest = divmod(size, unit)
        up = {"rn": 2 * rest > unit or (2 * rest == unit and steps % 2 == 1), "rz": False}
        up |= {"rp": rest > 0 and value > 0, "rm": rest > 0 and value < 0}
        rounded = (steps + up[mode]) * unit
        largest = (2 - Fraction(2) ** (1 - self.precision)) * Fraction(2) ** self.top
        if rounded > largest:
            away = mode == "rn" or (mode == "rp" and value > 0) or (mode == "rm" and value < 0)
            rounded = math.inf if away else largest
        if flushed and rounded < Fraction(2) ** self.bottom:
            rounded = Fraction(0)
        return float(rounded) if value > 0 else -float(rounded)

    def flushed(self, value: float) -> float:
        """As .ftz reads it."""
        return math.copysign(0.0, value) if abs(value) < 2.0**self.bottom else value


def floor_log2(value: Fraction) -> int:
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


F32, F64 = Format(24, 8), Format(53, 11)
FORMATS = {"f16": Format(11, 5), "bf16": Format(8, 8), "f32": F32, "f64": F64}
NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": 0x7FF8 << 48}


def pattern(value: float, kind: str) -> int:
    """The bits of a value that the format holds; NaN is the one that arithmetic gives."""
    if math.isnan(value):
        return NAN[kind]
    if kind == "bf16":
        return pattern(value, "f32") >> 16
    number, bits = {"f16": ("<e", "<H"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}[kind]
    return int(struct.unpack(bits, struct.pack(number, value))[0])


def value(bits: int, kind: str) -> float:
    """What the bits stand for."""
    if kind == "bf16":
        return value(bits << 16, "f32")
    number, code = {"f16": ("<e", "<H"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}[kind]
    return float(struct.unpack(number, struct.pack(code, bits))[0])


def ieee(operation: str, mode: str, kind: str, *, flushed: bool = False) -> Callable[..., float]:
    """The correctly rounded operation, flushed or not; infinities, NaN and zeros by double arithmetic."""
    exact = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
        "fma": lambda a, b, c: a * b + c,
    }[operation]

    def apply(*values: float) -> float:
        if not all(map(math.isfinite, values)) or (operation == "div" and values[1] == 0):
            return special(operation, *values)
        result = exact(*map(Fraction, values))
        if result:
            return FORMATS[kind].round(result, mode, flushed=flushed)
        return zero(operation, mode, *values)

    return apply


def special(operation: str, *values: float) -> float:
    with np.errstate(all="ignore"):
        a, b = np.float64(values[0]), np.float64(values[1])
        if operation == "fma":
            product = a * b  # finite operands only matter by sign here
            if math.isfinite(values[0]) and math.isfinite(values[1]):
                return values[2]
            return float(product + np.float64(values[2]))
        return float({"add": a + b, "sub": a - b, "mul": a * b, "div": a / b}[operation])


def zero(operation: str, mode: str, *values: float) -> float:
    """The sign of an exact zero."""
    if operation in {"mul", "div"}:
        return math.copysign(1, values[0]) * math.copysign(1, values[1]) * 0.0
    terms = {
        "add": lambda: values,
        "sub": lambda: (values[0], -values[1]),
        "fma": lambda: (
            math.copysign(1, values[0]) * math.copysign(1, values[1]) * 0.0
            if values[0] * values[1] == 0
            else 1.0,
            values[2],
        ),
    }[operation]()
    signs = {math.copysign(1, t) for t in terms if t == 0}
    if len(signs) == 1 and all(t == 0 for t in terms):
        return signs.pop() * 0.0
    return -0.0 if mode == "rm" else 0.0


def root(x: float, mode: str, kind: str) -> float:
    """The correctly rounded square root."""
    if math.isnan(x) or x < 0:
        return math.nan
    if x == 0 or math.isinf(x):
        return x
    numerator, denominator = Fraction(x).as_integer_ratio()
    square = numerator * denominator << 240
    whole = math.isqrt(square)
    # What is cut off decides the rounding only by being there.
    return FORMATS[kind].round(Fraction(2 * whole + (whole * whole != square), denominator << 121), mode)
