"""Numbers that a formula computes with in Python, as a right program's arithmetic makes them.

Layer: imports the bounds.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Self

from grader.problems import bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Off = Callable[[float, float], float]

SIGNIFICANT = 2.0**24  # float32 holds the multiples of 1/SIGNIFICANT between 1/2 and 1
SMALL_POWER = 8

_OPERATIONS = {
    name: getattr(operator, name)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "neg", "pos", "abs")
} | {"pow": pow}
_UNITS = {"add": 2.0, "sub": 2.0, "mul": 2.0, "mod": 2.0, "truediv": bounds.QUOTIENT}


def is_rounded(value: object) -> bool:
    """Whether a right float32 program has to round this number, as it does with 0.1."""
    if not isinstance(value, float) or not math.isfinite(value):
        return False
    return not (math.frexp(value)[0] * SIGNIFICANT).is_integer()


def in_python(value: float, off: Off) -> int | float:
    """A number whose sums, products, quotients and powers in Python are off, and so are theirs.

    Args:
        value: of any size or scalar.
        off: from a result and a number of units to that result with an error of so many u of it.
    """
    if isinstance(value, bool):
        return value
    return _Whole(value, off) if isinstance(value, int) else _Real(value, off)


def power_units(base: float, power: float) -> float:
    """The error of a power in u of it: by products for small exponents, else by exp2(y log2(x))."""
    if power in range(SMALL_POWER + 1):
        return 2.0 * power
    return 8.0 + 4.0 * (abs(power * math.log(abs(base))) if base else 0.0)


class _Real(float):
    off: Off

    def __new__(cls, value: float, off: Off) -> Self:
        number = super().__new__(cls, value)
        number.off = off
        return number


class _Whole(int):
    off: Off

    def __new__(cls, value: int, off: Off) -> Self:
        number = super().__new__(cls, value)
        number.off = off
        return number


def _plain(number: float) -> int | float:
    """The number itself, whose arithmetic is Python's."""
    return int(number) if isinstance(number, int) else float(number)


def _method(name: str, *, reflected: bool) -> Callable[..., Any]:
    """The method of this name of both classes."""

    def computed(self: _Real | _Whole, *others: object) -> Any:  # noqa: ANN401 - as of Python's numbers
        if not all(isinstance(other, int | float) for other in others):
            return NotImplemented
        operands: Sequence[int | float] = [_plain(number) for number in (self, *others)]  # type: ignore[arg-type]
        if reflected:
            operands = operands[::-1]
        result = _OPERATIONS[name](*operands)
        if isinstance(result, float):
            units = power_units(operands[0], operands[1]) if name == "pow" else _UNITS.get(name, 0.0)
            result = self.off(result, units)
        return in_python(result, self.off) if isinstance(result, int | float) else result

    return computed


for _class in (_Real, _Whole):
    for _name in _OPERATIONS:
        setattr(_class, f"__{_name}__", _method(_name, reflected=False))
        if _name not in {"neg", "pos", "abs"}:
            setattr(_class, f"__r{_name}__", _method(_name, reflected=True))
