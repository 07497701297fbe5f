"""The gates of the RG-LRU, exact and with the errors of right ones, and contents for them.

    i = sigmoid(gx),  r = sigmoid(ga),  d = 8 r softplus(C),  a = exp(-d),  s = sqrt(1 - a^2)

Relative errors, with e(x) = bounds.exp_error of x, u the rounding unit of float32 and q = bounds.QUOTIENT:
    sigmoid(x)   (1 - sigmoid(x)) e(x) + (q + 1) u
    softplus     e(C) + 8 u                                           as log1p(exp(C))
    d            D = errors of r and softplus + 2 u
    a            e(d) + d D
    s            (D k + 16 u + min(1, a^2 / (1 - a^2)) 2 e(d)) / 2 + 2 u,  k = 2 d a^2 / (1 - a^2) <= 1

where the last term of s is for kernels that take 1 - a^2 literally where a is not near 1. Near 1 that loses
all digits: it has to be expm1 or a series.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grader.problems import bounds
from grader.problems.distributions import normal

from .shapes import GONE, SLOW, UNIT, shape_of, stored

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from grader.problems.problem import Case, Inputs

    Array = NDArray[np.float64]

EIGHT = 8.0
CLOSED, OPEN, MIDDLE = "closed gates", "open gates", "middling decay"


@dataclass(frozen=True)
class Gates:
    """The gates of all elements [batch, length, width]; ``ratio`` [width] is sigmoid(C) / softplus(C).

    ``i_off`` and the like are relative errors, those of ``one_minus_i`` and ``one_minus_r`` absolute.
    """

    i: Array
    r: Array
    d: Array
    a: Array
    s: Array
    ratio: Array
    i_off: Array
    r_off: Array
    d_off: Array
    a_off: Array
    s_off: Array


def sigmoid(x: Array) -> Array:
    """The logistic function of ``x``, computed without overflow."""
    power = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1, power) / (1 + power))


def _sigmoid_off(x: Array) -> Array:
    return np.asarray(sigmoid(-x) * bounds.exp_error(x, UNIT) + (bounds.QUOTIENT + 1) * UNIT)


def gates(data: Inputs) -> Gates:
    """Compute the gates from the inputs of a call, with their relative errors."""
    gx, ga, c = data.wide("gx"), data.wide("ga"), data.wide("c")
    softplus = np.logaddexp(0, c)
    i, r = sigmoid(gx), sigmoid(ga)
    d = EIGHT * softplus * r
    a, square = np.exp(-d), -np.expm1(-2 * d)
    r_off = _sigmoid_off(ga)
    d_off = r_off + bounds.exp_error(c, UNIT) + 10 * UNIT
    a_off = bounds.exp_error(d, UNIT) + d * d_off
    there = square > 0
    odds = np.divide(a * a, square, out=np.zeros_like(a), where=there)
    s_off = (d_off * 2 * d * odds + 16 * UNIT + np.minimum(1, odds) * 2 * bounds.exp_error(d, UNIT)) / 2
    ratio = sigmoid(c) / softplus
    return Gates(
        i, r, d, a, np.sqrt(square), ratio, _sigmoid_off(gx), r_off, d_off, a_off, s_off + 2 * UNIT
    )  # fmt: skip


def contents(random: np.random.Generator, case: Case) -> dict[str, NDArray[np.generic] | None]:
    """X and both pre-activations [batch, length, width] in the case's type, and C [width].

    C makes the factors at r = 1 lie between 0.9 and 0.999, as layers are initialised; the case's content
    says what is different.
    """
    shape = shape_of(case)
    decay = -np.log(random.uniform(0.9, 0.999, shape[2])) / EIGHT
    c, mean = np.log(np.expm1(decay)), 0.0
    if case.distribution == SLOW:
        c -= 3
    elif case.distribution == GONE:
        c, mean = c - 6, -8.0
    elif case.distribution == MIDDLE:  # d on both sides of where a series for 1 - a^2 has to end
        c = random.uniform(-4, -1.5, shape[2])
    elif case.distribution in {OPEN, CLOSED}:
        c = random.uniform(-2, 2, shape[2])
        mean = 5.0 if case.distribution == OPEN else -14.0
    return {
        "x": stored(normal(random, shape), case),
        "gx": stored(normal(random, shape, 2.0), case),
        "ga": stored(normal(random, shape, 1.5, mean), case),
        "c": c.astype(np.float32),
    }
