"""Error bounds by Monte Carlo arithmetic: how far a right program may be from the exact result.

The bounds of the first assignment's kernels are derived by hand (``bounds``). For any other formula, forward
and backward, the same first-order argument is carried out by the machine (Monte Carlo arithmetic, Parker
1997): the formula runs in float64, and every result of an operation is off by a random error as large as a
right program's arithmetic makes it. What comes out differs from the exact run by a sum of many small
independent contributions, each carried through the rest of the formula; ``spread`` is its root mean square.
With the unit roundoff u (2^-24, for half types too, as a right kernel accumulates them in float32), one
operation is off by

    c u |result|                        ``RELATIVE`` has c: 2 for + - * and the root, QUOTIENT for /, ...
    bounds.exp_error(x) |result|        for exp, as the fast exponential
    u (8 + |x|)                         for sin and cos, as the fast ones
    u (8 + 4 |y log x|) |result|        for x^y, as exp2(y log2(x)); 2 |y| u |result| for a small integer y
    u sqrt(n) max(|sum|, |terms|_2)     for a sum or a dot product of n terms, in whatever order,
    + sqrt(n) 2^-126                    as atomicAdd in global memory takes subnormal numbers for zero
    sqrt(1 + e / (2 LUCK)^2) times that for a sum of which e neighbouring pairs of terms are equal
    2 u sqrt(n) |product|               for a product of n factors

and ``EXACT`` ones are not off at all, nor are results of integers. A cast to a half type rounds to it
(``bounds.storing``). An operation without an error model is refused by name.

Numbers that a formula computes in Python, of sizes, scalars and constants, are off in the same way
(``scalars``), by one error for all elements that they go into. Where an operation takes a number that float32
does not hold, as 0.1 or 1 / math.sqrt(n), that is off by 2 u of it.

Additions of equal terms are off by sqrt(n e) u |sum|, as ``bounds`` derives. This is divided by the
2 LUCK that the spread is multiplied by below.

A right program stays within ``bounds.LUCK`` times the spread, and ``bounds.allowed`` doubles that. The spread
of a single element is estimated from ``SAMPLES`` runs. It comes out as less than a third of what it is for
one element in 100 000; the factor 12 keeps right programs right even there. Where only one operation of a
formula makes errors, nothing has to be estimated: a run in which each error is its root mean square gives
the spread, and one with the other sign, if operations follow that do not treat both signs alike.

Layer: imports numpy, torch and the bounds.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

from grader.problems import bounds
from grader.problems.aten import Operators, aten
from grader.problems.explained import FormulaError
from grader.problems.problem import Candidate, Expectation
from grader.problems.scalars import SMALL_POWER, in_python, is_rounded, with_constants
from grader.problems.threads import torch_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray
    from torch import Tensor

    from grader.problems.dtypes import Precision

    Programs = Sequence[Callable[["Rounding"], Mapping[str, Tensor]]]

ROW_SAMPLES = 6  # where the elements of a row are taken together
SAMPLES = 12
UNIT = bounds.PRECISIONS["float32"].unit
EQUAL_WITHIN = 2.0**-14  # equal terms differ by less of themselves, by the errors of a sample
FLUSHED = bounds.PRECISIONS["float32"].tiny / UNIT  # what an addition of atomicAdd may drop, in u

RELATIVE = {
    **dict.fromkeys(("add", "sub", "rsub", "mul", "sqrt", "remainder", "frac"), 2.0),
    **dict.fromkeys(("div", "rsqrt", "reciprocal"), bounds.QUOTIENT),
    **dict.fromkeys(("erf", "erfc", "erfinv", "log", "log2", "log10", "log1p", "expm1"), 8.0),
    **dict.fromkeys(("tanh", "sigmoid", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh"), 8.0),
    **dict.fromkeys(("asinh", "acosh", "atanh", "lgamma"), 8.0),
}
"""Error of a result in units of u |result|, at most that of ``__fdividef``, ``logf`` and the like."""

EXACT = {
    *("copy", "clone", "_to_copy", "convert_element_type", "lift_fresh", "lift_fresh_copy", "alias"),
    *(
        "empty",
        "empty_like",
        "empty_strided",
        "zeros",
        "zeros_like",
        "ones",
        "ones_like",
        "full",
        "full_like",
    ),
    *("new_empty", "new_empty_strided", "new_zeros", "new_ones", "new_full", "scalar_tensor", "arange"),
    *("fill", "zero", "where", "masked_fill", "maximum", "minimum", "amax", "amin", "max", "min", "fmax"),
    *("fmin", "clamp", "clamp_min", "clamp_max", "relu", "threshold", "abs", "neg", "sign", "sgn", "floor"),
    *("ceil", "round", "trunc", "fmod", "gather", "index", "index_select", "embedding", "take", "sort"),
    *("topk", "cat", "stack", "flip", "roll", "constant_pad_nd", "triu", "tril", "scatter", "repeat"),
    *("masked_select", "nan_to_num", "copysign", "masked_scatter", "cummax", "cummin", "kthvalue", "median"),
    *("max_pool2d_with_indices", "select_scatter", "slice_scatter", "diagonal_scatter", "_unsafe_view"),
    *("nonzero", "unique", "bincount", "searchsorted", "bucketize", "argsort", "argmax", "argmin", "any"),
    *("all", "eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "logical_and", "logical_or"),
    *("logical_not", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"),
    *("bitwise_left_shift", "bitwise_right_shift", "floor_divide", "repeat_interleave", "equal"),
    *("expand", "view", "reshape", "_unsafe_index"),
}
"""Operations that choose, move or compare: their results have no error of their own."""


_SIZED_BY_NUMBERS = {"arange"}
"""Operations of which a number says how many results there are."""


@dataclass(frozen=True)
class Errors:
    """Errors in units of their root mean square.

    Attributes:
        of_array: for each element of a result.
        of_number: for a number.
    """

    of_array: Callable[[Tensor], Tensor]
    of_number: Callable[[], float]


class Rounding(Operators):  # type: ignore[no-untyped-call]
    """Runs in float64, whatever floating-point types it is asked for, and adds the errors of arithmetic.

    Args:
        errors: of results; without it there are none.
        unit: the unit roundoff of a right program's arithmetic.

    Attributes:
        inexact: how many of the operations that were run make errors, and of the numbers that they took.
        ends_inexact: whether the last one did.
    """

    def __init__(self, errors: Errors | None, unit: float = UNIT) -> None:
        super().__init__()
        self._errors = errors
        self._unit = unit
        self._numbers: set[float] = set()
        self.inexact = 0
        self.ends_inexact = False

    def knows(self, name: str, args: Sequence[Any]) -> bool:
        """Whether there is an error model: of operations on integers alone, all are exact."""
        if name in MODELLED:
            return True
        tensors = [leaf for leaf in tree_leaves(args) if isinstance(leaf, torch.Tensor)]
        return bool(tensors) and not any(tensor.is_floating_point() for tensor in tensors)

    def refused(self, name: str) -> FormulaError:
        """An operation without error model."""
        return FormulaError(
            f"{name} has no error model: write the formula with other operations, or give the problem an "
            "oracle of its own"
        )

    def run(self, name: str, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """The result in float64, with a random error where arithmetic makes one."""
        dtype = kwargs.get("dtype")
        if _is_floating(dtype):
            kwargs = {**kwargs, "dtype": torch.float64}
        if name not in _SIZED_BY_NUMBERS and any(map(is_rounded, (*args, *kwargs.values()))):
            args = [self._rounded(value) for value in args]
            kwargs = {key: self._rounded(value) for key, value in kwargs.items()}
        if name == "convert_element_type" and _is_floating(args[1]):
            dtype, args = args[1], (args[0], torch.float64)
        result = func(*args, **kwargs)
        if func.is_view:
            return result
        self.ends_inexact = False
        if not isinstance(result, torch.Tensor) or not result.is_floating_point():
            return result
        result = result.double()
        self.ends_inexact = name in RELATIVE or name in _SIZES or self._storage(name, dtype) is not None
        self.inexact += self.ends_inexact
        size = None if self._errors is None else self._size(name, args, kwargs, result, dtype)
        if size is None or self._errors is None:
            return result
        rough = self._errors.of_array(result).mul_(size).add_(result)
        if math.isfinite(rough.sum()):  # so is each element, and that of the result
            return rough
        return torch.where(torch.isfinite(result), rough, result)

    def in_python(self, value: float) -> float:
        """A size or scalar of the formula, whose arithmetic in Python makes errors."""
        return in_python(value, self._off)

    def with_constants(self, formula: Callable[..., Any]) -> Callable[..., Any]:
        """``formula`` with constants that are rounded, and whose arithmetic in Python makes errors."""
        return with_constants(formula, self._off)

    def _off(self, value: float, units: float) -> float:
        """A computed number with its error, if float32 does not hold it."""
        if not is_rounded(value):
            return value
        self.inexact += 1
        if self._errors is None:
            return value
        rough = value * (1.0 + self._errors.of_number() * units * self._unit)
        self._numbers.add(rough)
        return rough

    def _rounded(self, value: object) -> object:
        """A number as an operation takes it: with an error, unless it has one."""
        if not isinstance(value, float) or value in self._numbers:
            return value
        return self._off(value, 2.0)

    def _size(
        self,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Tensor,
        dtype: torch.dtype | None,
    ) -> Tensor | None:
        """The root mean square of the error of one operation; None for those that are exact."""
        if name in RELATIVE:
            return RELATIVE[name] * self._unit * result.abs()
        if name in _SIZES:
            units = _SIZES[name](args, kwargs, result)
            return None if units is None else units.mul_(self._unit)
        storage = self._storage(name, dtype)
        return None if storage is None else bounds.storing(result, storage)

    def _storage(self, name: str, dtype: torch.dtype | None) -> Precision | None:
        """The type that a cast goes to; None if it is no less exact than arithmetic."""
        if name not in {"_to_copy", "convert_element_type"}:
            return None
        precision = bounds.PRECISIONS.get(str(dtype).removeprefix("torch."))
        return precision if precision and precision.storage > self._unit else None


def _is_floating(dtype: object) -> bool:
    return isinstance(dtype, torch.dtype) and dtype.is_floating_point


# The size of an error in u, from the arguments of an operation and its result.


def _of_exp(args: Sequence[Any], _: Mapping[str, Any], result: Tensor) -> Tensor:
    argument: Tensor = args[0].abs().nan_to_num(posinf=0.0)
    return (4.0 + 3.346 * argument) * result.abs()


def _of_sine(args: Sequence[Any], _: Mapping[str, Any], result: Tensor) -> Tensor:
    argument: Tensor = args[0].abs()
    return 8.0 + argument.expand_as(result)


def _of_power(args: Sequence[Any], _: Mapping[str, Any], result: Tensor) -> Tensor:
    base, power = (
        argument if isinstance(argument, torch.Tensor) else torch.tensor(float(argument))
        for argument in args[:2]
    )
    if not isinstance(args[1], torch.Tensor) and args[1] in range(SMALL_POWER + 1):
        return 2.0 * float(args[1]) * result.abs()
    exponent: Tensor = (power * base.abs().log()).abs().nan_to_num(posinf=0.0)
    return (8.0 + 4.0 * exponent) * result.abs()


def _of_sum(args: Sequence[Any], kwargs: Mapping[str, Any], result: Tensor) -> Tensor | None:
    first: Tensor = args[0]
    if not first.is_floating_point():
        return None
    terms = first.numel() // max(1, result.numel())
    return _additions(terms, args, kwargs, result).mul_(_largest(result, _length(args, kwargs, result)))


def _of_mean(args: Sequence[Any], kwargs: Mapping[str, Any], result: Tensor) -> Tensor | None:
    first: Tensor = args[0]
    terms = first.numel() // max(1, result.numel())
    largest = _largest(result * terms, _length(args, kwargs, result))
    return _additions(terms, args, kwargs, result).mul_(largest).div_(terms)


def _additions(terms: int, args: Sequence[Any], kwargs: Mapping[str, Any], result: Tensor) -> Tensor:
    """The root mean square of the errors of adding ``terms`` terms, in u of the largest partial sum."""
    pairs = _equal_neighbours(args[0], _axes(args, kwargs)).reshape(result.shape)
    return torch.sqrt(terms * (1.0 + pairs / (2 * bounds.LUCK) ** 2))


def _equal_neighbours(terms: Tensor, axes: Sequence[int]) -> Tensor:
    """How many terms equal the next one along the last of ``axes``, but for their own errors; 0 for zeros."""
    last = max(axis % terms.dim() for axis in axes) if terms.dim() else 0
    if not terms.dim() or terms.shape[last] < 2:
        return torch.zeros_like(terms, dtype=torch.float64).sum(tuple(axes))
    first, second = terms.narrow(last, 0, terms.shape[last] - 1), terms.narrow(last, 1, terms.shape[last] - 1)
    equal = ((second - first).abs_() < EQUAL_WITHIN * first.abs()).double()
    return equal.sum(tuple(axes))


def _largest(total: Tensor, length: Tensor) -> Tensor:
    """How large a partial sum gets, and what is dropped where it is subnormal, in u."""
    return torch.maximum(total.abs(), length).add_(FLUSHED)


def _length(args: Sequence[Any], kwargs: Mapping[str, Any], result: Tensor) -> Tensor:
    """The root of the sum of squares, of terms that a sum takes with these arguments."""
    length: Tensor = torch.linalg.vector_norm(args[0].double(), dim=_axes(args, kwargs))
    return length.reshape(result.shape)


def _axes(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[int, ...]:
    """The axes that a sum with these arguments goes along."""
    axes = args[1] if len(args) > 1 else kwargs.get("dim")
    return tuple(axes or range(args[0].dim())) if not isinstance(axes, int) else (axes,)


def _of_product(args: Sequence[Any], _: Mapping[str, Any], result: Tensor) -> Tensor:
    return 2.0 * math.sqrt(args[0].numel() / max(1, result.numel())) * result.abs()


def _of_cumulative_sum(args: Sequence[Any], _: Mapping[str, Any], result: Tensor) -> Tensor:
    terms, axis = args[:2]
    length = torch.sqrt(torch.cumsum(terms * terms, axis))
    return _largest(result, length).mul_(_positions(result, axis).sqrt_())


def _of_cumulative_product(args: Sequence[Any], _: Mapping[str, Any], result: Tensor) -> Tensor:
    return 2.0 * torch.sqrt(_positions(result, args[1])) * result.abs()


def _positions(like: Tensor, axis: int) -> Tensor:
    """1, 2, 3, ... along ``axis``, with length 1 along the others."""
    shape = [-1 if dimension == axis % like.dim() else 1 for dimension in range(like.dim())]
    return torch.arange(1.0, like.shape[axis] + 1, dtype=like.dtype).reshape(shape)


def _of_matrices(args: Sequence[Any], _: Mapping[str, Any], result: Tensor) -> Tensor:
    left, right = args
    length = torch.sqrt(torch.matmul(left * left, right * right))
    return math.sqrt(left.shape[-1]) * _largest(result, length)


def _of_convolution(args: Sequence[Any], _: Mapping[str, Any], result: Tensor) -> Tensor:
    inp, weight, bias, *rest = args
    squares = aten.convolution(inp * inp, weight * weight, None if bias is None else bias * bias, *rest)
    return math.sqrt(weight[0].numel() + 1) * _largest(result, torch.sqrt(squares))


def _of_scattered_sum(args: Sequence[Any], _: Mapping[str, Any], result: Tensor) -> Tensor:
    before, axis, chosen, terms = args
    squares = aten.scatter_add(before * before, axis, chosen, terms * terms)
    counts = aten.scatter_add(torch.ones_like(before), axis, chosen, torch.ones_like(terms))
    return torch.sqrt(counts) * _largest(result, torch.sqrt(squares))


def _of_segments(args: Sequence[Any], kwargs: Mapping[str, Any], result: Tensor) -> Tensor:
    terms, *rest = args
    squares = aten.segment_reduce(terms * terms, *rest, **kwargs)
    counts = aten.segment_reduce(torch.ones_like(terms), *rest, **kwargs)
    return torch.sqrt(counts) * _largest(result, torch.sqrt(squares))


def _of_put(args: Sequence[Any], _: Mapping[str, Any], result: Tensor) -> Tensor | None:
    before, chosen, terms, *accumulate = args
    if not any(accumulate):
        return None
    squares = aten.index_put(before * before, chosen, terms * terms, True)
    counts = aten.index_put(torch.ones_like(before), chosen, torch.ones_like(terms), True)
    return torch.sqrt(counts) * _largest(result, torch.sqrt(squares))


_SIZES: Mapping[str, Callable[[Sequence[Any], Mapping[str, Any], Tensor], Tensor | None]] = {
    "exp": _of_exp,
    "exp2": _of_exp,
    "sin": _of_sine,
    "cos": _of_sine,
    "pow": _of_power,
    "sum": _of_sum,
    "mean": _of_mean,
    "prod": _of_product,
    "cumsum": _of_cumulative_sum,
    "cumprod": _of_cumulative_product,
    "mm": _of_matrices,
    "bmm": _of_matrices,
    "convolution": _of_convolution,
    "scatter_add": _of_scattered_sum,
    "segment_reduce": _of_segments,
    "index_put": _of_put,
}


MODELLED = frozenset({*RELATIVE, *EXACT, *_SIZES})
"""The operations that have an error model for floating-point numbers, views aside."""


def one_thread() -> AbstractContextManager[None]:
    """Limit PyTorch to one thread: in thousands of small operations more threads only wait."""
    return torch_threads(1)


def expectations(
    program: Callable[[], Mapping[str, Tensor]], seed: int, samples: int = ROW_SAMPLES
) -> dict[str, Expectation]:
    """The results of ``program`` in float64, and how far a right float32 program may be from them, by row.

    All elements of a row get the same bound, from their errors together: fewer samples are enough.
    """
    exact = program()
    squares = squared_errors([lambda _: program()], exact, seed, samples)
    return {
        name: Expectation((_candidate(value.numpy(), squares[name].numpy()),))
        for name, value in exact.items()
    }


def _random_errors(seed: int) -> Errors:
    """Independent ones, uniformly distributed."""
    generator, most = torch.Generator().manual_seed(seed % 2**63), math.sqrt(3)
    numbers = random.Random(seed)
    return Errors(
        lambda result: torch.empty_like(result).uniform_(-most, most, generator=generator),
        lambda: numbers.uniform(-most, most),
    )


def squared_errors(
    programs: Programs, exact: Mapping[str, Tensor], seed: int, samples: int = SAMPLES, unit: float = UNIT
) -> dict[str, Tensor]:
    """The mean square of the error of each element, in the one of ``programs`` that makes the largest."""
    worst: dict[str, Tensor] = {}
    for program in programs:
        squares = {name: torch.zeros_like(value) for name, value in exact.items()}
        for sample in range(samples):
            with Rounding(_random_errors(seed + sample), unit) as rounding:
                rough = program(rounding)
            for name, value in rough.items():
                squares[name] += (value - exact[name]) ** 2
        means = {name: square / samples for name, square in squares.items()}
        worst = {name: torch.maximum(worst.get(name, mean), mean) for name, mean in means.items()}
    return worst


def steady_errors(
    program: Callable[[Rounding], Mapping[str, Tensor]], exact: Mapping[str, Tensor], unit: float = UNIT
) -> dict[str, Tensor]:
    """The squared errors of a program in which at most one operation makes errors."""

    def squares(sign: float) -> tuple[dict[str, Tensor], bool]:
        errors = Errors(lambda result: torch.full_like(result, sign), lambda: sign)
        with Rounding(errors, unit) as rounding:
            rough = program(rounding)
        return {name: (value - exact[name]).square_() for name, value in rough.items()}, rounding.ends_inexact

    above, alike = squares(1.0)
    if alike:
        return above
    below, _ = squares(-1.0)
    return {name: torch.maximum(square, below[name]) for name, square in above.items()}


def _candidate(expected: NDArray[np.float64], square: NDArray[np.float64]) -> Candidate:
    spread = np.broadcast_to(np.sqrt(square.mean(axis=-1, keepdims=True)), expected.shape)
    return Candidate(expected, bounds.allowed(bounds.LUCK * spread, expected, bounds.PRECISIONS["float32"]))
