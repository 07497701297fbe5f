"""How far a right kernel may be from the exact answer: the pieces of every problem's tolerance, derived.

Notation: u is the unit roundoff of the arithmetic (2^-24 for float32), fl(x op y) = (x op y)(1 + d), |d| <=
u. Everything is first order in u. A problem composes these pieces into a bound per output element, computed
in float64 from the case's own numbers, so that it scales with the row and never with an absolute constant.

**Sums.** Adding n terms t_i one after another gives partial sums s_k and the error sum(d_k s_k) (Higham,
Accuracy and Stability, 4.2). In the worst case that is n u max|s_k|; with rounding errors that are
independent of mean zero it exceeds L sqrt(n) u max|s_k| with probability below 2 exp(-L^2 / 2) (Higham and
Mary, 2019). L = 6 makes that 3e-8, and min(n, L sqrt(n)) is at least what pairwise, warp-tree, block-tree,
strided or float4 orders lose: they make fewer additions in a chain. The order is the student's, so max|s_k|
is not known; a partial sum of a subset of terms chosen without looking at them is its share of the total plus
a random walk, hence M = min(sum|t|, |sum t| + 4 sqrt(sum t^2)). Terms that carry r rounding errors of their
own add r u min(sum|t|, L sqrt(sum t^2)) by the same argument. Errors of equal terms are not independent:
while a sum stays in an octave they are all to the same side, so that sum(s_k) = (n + 1) / 2 max|s_k| counts
where all are equal. Terms with m_1, m_2, ... equal ones, in an order that does not matter, have
e = sum(m_i^2) / n equal pairs of neighbours; the errors of each kind go either way, so that
sqrt(sum(m_i^2)) = sqrt(n e) counts.

**Exponential.** ``__expf(x)`` is off by at most 2 + floor(1.173 |x|) ulp (CUDA C++ Programming Guide,
mathematical functions), an ulp is at most 2u of the value; the argument x = l - max is itself rounded, which
exp turns into a relative error u |x|. Together u (4 + 3.346 |x|), more than ``expf`` (2 ulp) or ``exp2f(x
log2(e))`` lose.

**Division and root.** ``__fdividef``, ``rsqrtf`` and a reciprocal followed by a product: 2 ulp each, 4u, one
u more for the product.

**Storage.** An output kept in a type with unit roundoff v > u (half problems accumulate in float32) adds v
|y|; for float32 v = u. Where |y| < 2^-126 (the smallest normal number of the type) the output may be flushed
to zero. float16 is not flushed, but below 2^-14 its numbers are 2^-24 apart, so that storing one costs 2^-25.
The same holds for a number on the way that is rounded to the type.

**Safety.** The sum of the pieces is multiplied by SAFETY = 2, which covers the second order terms and a
different but equally good association of the formula. Rounding an intermediate to half precision costs 2^-11
relative to that intermediate, 2^-8 in bfloat16; the bounds stay below that in some output of each case except
where the condition of the case itself is worse (large mean over deviation). ``tests/problems/test_bounds.py``
measures both margins.

Layer: imports numpy and the element types.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from grader.problems.dtypes import DTYPES

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from grader.problems.dtypes import Precision

    Array = NDArray[np.float64]

Numbers = TypeVar("Numbers", "Array", "Tensor")

SAFETY = 2.0
LUCK = 6.0  # L above
QUOTIENT = 5.0  # rounding errors, in u, of a fast division or reciprocal root and the product with it

PRECISIONS = {name: dtype.precision for name, dtype in DTYPES.items() if dtype.precision}
"""How exact the floating-point types of a problem's arrays are, by name."""


def additions(n: int) -> float:
    """Rounding errors, in u of the largest partial sum, that adding ``n`` terms in any order may make."""
    return min(float(n), LUCK * math.sqrt(n))


def additions_of(terms: Array, axis: int) -> Array:
    """``additions`` of terms along an axis, which keeps length 1, and what equal terms make of them."""
    count = terms.shape[axis]
    along = np.moveaxis(terms, axis, -1)
    first, second = along[..., :-1], along[..., 1:]
    pairs = np.count_nonzero((first == second) & (first != 0), axis=-1, keepdims=True)
    of_equal = np.where(pairs == count - 1, (count + 1) / 2, np.sqrt(count * pairs))
    counted: Array = np.maximum(additions(count), np.moveaxis(of_equal, -1, axis))
    return counted


def partial_sum(terms: Array, axis: int) -> Array:
    """M: how large a partial sum of ``terms`` gets, whatever the order; keeps ``axis`` with length 1."""
    return _partial_sum(terms, axis, *_norms(terms, axis))


def sum_error(terms: Array, axis: int, roundings: float, unit: float) -> Array:
    """Error of the sum of ``terms``, each of which carries ``roundings`` rounding errors; keeps ``axis``."""
    magnitudes, length = _norms(terms, axis)
    magnitude = np.minimum(magnitudes, LUCK * length)
    largest = _partial_sum(terms, axis, magnitudes, length)
    error: Array = unit * (additions_of(terms, axis) * largest + roundings * magnitude)
    return error


def _partial_sum(terms: Array, axis: int, magnitudes: Array, length: Array) -> Array:
    total = np.abs(np.sum(terms, axis=axis, keepdims=True))
    bound: Array = np.minimum(magnitudes, total + 4 * length)
    return bound


def _norms(terms: Array, axis: int) -> tuple[Array, Array]:
    """sum|t| and sqrt(sum t^2) of ``terms``."""
    positive = np.abs(terms)
    magnitudes: Array = np.sum(positive, axis=axis, keepdims=True)
    squares = np.multiply(terms, terms, out=positive)
    return magnitudes, np.sqrt(np.sum(squares, axis=axis, keepdims=True))


def exp_error(argument: Array, unit: float) -> Array:
    """Relative error of the fast exponential of a rounded ``argument``."""
    error: Array = np.abs(argument)
    error *= 3.346 * unit
    error += 4.0 * unit
    return error


def storing(value: Numbers, precision: Precision) -> Numbers:
    """The error of rounding ``value`` to the type of the stored arrays."""
    error = precision.word * abs(value)
    error += precision.tiny / 2
    return error


def allowed(error: Numbers, expected: Numbers, precision: Precision) -> Numbers:
    """The tolerance of an output: ``error`` of computing and of storing ``expected``, made safe."""
    bound = storing(expected, precision)
    bound += error
    bound *= SAFETY
    return bound
