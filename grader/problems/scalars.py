"""Numbers that a formula computes with in Python, as a right program's arithmetic makes them.

Layer: imports torch and the bounds.
"""

from __future__ import annotations

import math
import operator
import sys
from contextlib import suppress
from types import CellType, CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Self

import torch
from torch.overrides import TorchFunctionMode

from grader.problems import bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    Off = Callable[[float, float], float]

SIGNIFICANT = 2.0**24  # float32 holds the multiples of 1/SIGNIFICANT between 1/2 and 1
SMALL_POWER = 8

_OPERATIONS = {
    name: getattr(operator, name)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "neg", "pos", "abs")
} | {"pow": pow}
_STEPS = {"floordiv", "mod"}
"""Operations whose result a small error of a number changes by much."""

_UNITS = {"add": 2.0, "sub": 2.0, "mul": 2.0, "mod": 2.0, "truediv": bounds.QUOTIENT}


def is_rounded(value: object) -> bool:
    """Whether a right float32 program has to round this number, as it does with 0.1."""
    if not isinstance(value, float) or not math.isfinite(value):
        return False
    return not (math.frexp(value)[0] * SIGNIFICANT).is_integer()


def in_python(value: float, off: Off) -> int | float:
    """A number whose sums, products, quotients and powers in Python are off, and so are theirs.

    What a program decides by such numbers, such as how long a tensor is, follows from them without errors.

    Args:
        value: of any size or scalar.
        off: from a result and a number of units to that result with an error of so many u of it.
    """
    if isinstance(value, bool):
        return value
    return _Whole(value, off) if isinstance(value, int) else _Real(value, value, off)


def with_constants(function: Callable[..., Any], off: Off) -> Callable[..., Any]:
    """``function`` with constants that are off, and with them what it computes of these in Python.

    Constants are those in its text, in its defaults, and the numbers and functions of its module that it
    names. Each has one error wherever it stands. What the interpreter has folded, as ``1 - 0.999``, is one
    constant.

    Args:
        function: a formula.
        off: as of ``in_python``.
    """
    return _Constants(off).copied(function) if isinstance(function, FunctionType) else function


class ExactSizes(TorchFunctionMode):
    """Lets the numbers of which one says how many results there are be without errors."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Collection[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - of PyTorch
        """Call a function of PyTorch."""
        kwargs = kwargs or {}
        if func is torch.arange:
            args = [_exact(value) for value in args]
            kwargs = {name: _exact(value) for name, value in kwargs.items()}
        return func(*args, **kwargs)


def power_units(base: float, power: float) -> float:
    """The error of a power in u of it: by products for small exponents, else by exp2(y log2(x))."""
    if power in range(SMALL_POWER + 1):
        return 2.0 * power
    return 8.0 + 4.0 * (abs(power * math.log(abs(base))) if base else 0.0)


class _Real(float):
    exact: float
    off: Off

    def __new__(cls, value: float, exact: float, off: Off) -> Self:
        number = super().__new__(cls, value)
        number.exact, number.off = exact, off
        return number

    def __hash__(self) -> int:
        return hash(self.exact)


class _Whole(int):
    off: Off

    def __new__(cls, value: int, off: Off) -> Self:
        number = super().__new__(cls, value)
        number.off = off
        return number


def _plain(number: float) -> int | float:
    """The number itself, whose arithmetic is Python's."""
    return int(number) if isinstance(number, int) else float(number)


def _exact(value: Any) -> Any:  # noqa: ANN401 - of a number of the same kind
    """What a number would be without errors."""
    return value.exact if isinstance(value, _Real) else value


def _method(name: str, *, reflected: bool) -> Callable[..., Any]:
    """The method of this name of both classes."""

    def computed(self: _Real | _Whole, *others: object) -> Any:  # noqa: ANN401 - as of Python's numbers
        if not all(isinstance(other, int | float) for other in others):
            return NotImplemented
        operands: Sequence[Any] = (self, *others)
        if reflected:
            operands = operands[::-1]
        exact: object = _OPERATIONS[name](*(_plain(_exact(number)) for number in operands))
        if not isinstance(exact, float):
            return in_python(exact, self.off) if isinstance(exact, int) else exact
        operands = [_plain(number) for number in operands]
        rough: object = exact if name in _STEPS else _OPERATIONS[name](*operands)
        if not isinstance(rough, float):  # a root of what is 0 but for errors
            rough = exact
        units = power_units(operands[0], operands[1]) if name == "pow" else _UNITS.get(name, 0.0)
        return _Real(self.off(rough, units), exact, self.off)

    return computed


def _decision(name: str) -> Callable[..., Any]:
    """The method of this name, which is asked of the number without errors."""

    def decided(self: _Real, *others: object) -> Any:  # noqa: ANN401 - as of Python's numbers
        return getattr(float, name)(self.exact, *map(_exact, others))

    return decided


for _class in (_Real, _Whole):
    for _name in _OPERATIONS:
        setattr(_class, f"__{_name}__", _method(_name, reflected=False))
        if _name not in {"neg", "pos", "abs"}:
            setattr(_class, f"__r{_name}__", _method(_name, reflected=True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "int", "trunc", "floor", "ceil", "round", "bool"):
    setattr(_Real, f"__{_name}__", _decision(f"__{_name}__"))


class _Constants:
    """Copies of functions whose constants are off."""

    def __init__(self, off: Off) -> None:
        self._off = off
        self._numbers: dict[float, float] = {}
        self._functions: dict[FunctionType, FunctionType] = {}

    def copied(self, function: FunctionType) -> FunctionType:
        """A copy of ``function``, and of what it calls in its module."""
        if function in self._functions:
            return self._functions[function]
        cells = [CellType() for _ in function.__closure__ or ()]
        names = dict(function.__globals__)
        copy = FunctionType(
            self._code(function.__code__), names, function.__name__, closure=tuple(cells) or None
        )
        self._functions[function] = copy
        copy.__dict__.update(function.__dict__)
        copy.__defaults__ = self._value(function.__defaults__)
        copy.__kwdefaults__ = {
            name: self._value(value) for name, value in (function.__kwdefaults__ or {}).items()
        }
        for cell, other in zip(cells, function.__closure__ or (), strict=True):
            with suppress(ValueError):  # of a name that is not set yet
                cell.cell_contents = self._value(other.cell_contents)
        names |= {name: self._value(names[name]) for name in _named(function.__code__) if name in names}
        return copy

    def _code(self, code: CodeType) -> CodeType:
        return code.replace(co_consts=tuple(map(self._value, code.co_consts)))

    def _value(self, value: Any) -> Any:  # noqa: ANN401 - of any constant
        if type(value) is float:
            off = self._numbers.setdefault(value, self._off(value, 2.0))
            return _Real(off, value, self._off)
        if type(value) is tuple:
            return tuple(map(self._value, value))
        if isinstance(value, CodeType):
            return self._code(value)
        if isinstance(value, FunctionType) and not _is_of_library(value):
            return self.copied(value)
        return value


def _named(code: CodeType) -> set[str]:
    """The names of globals and attributes in a function, and in those within."""
    within = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*map(_named, within))


def _is_of_library(function: FunctionType) -> bool:
    """Whether a function is none of an assignment's."""
    package = (function.__module__ or "").partition(".")[0]
    return package in {"grader", "numpy", "torch"} or package in sys.stdlib_module_names
