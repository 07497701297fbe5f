"""LayerNorm forward: every row is centred, scaled to variance 1, then scaled and shifted per column.

    m = mean(x),   v = mean((x - m)^2)  (biased),   y = scale (x - m) / sqrt(v + 1e-8) + bias

Bounds, from the pieces of ``bounds``, with n = hidden_dim:
    dm = sum_error(x) / n + u |m|
    dv = u (additions_of(x) + 4) (v + m^2) + 2 |m| dm + dm^2 + 2 u m^2
        for E[x^2] - E[x]^2, which the handout teaches: relative to v this is of order u (1 + (m / sigma)^2),
        its condition number. Two passes and Welford lose less.
    rho = 1 / sqrt(1 - dv / (v + 1e-8)) - 1 + u QUOTIENT, relative, of the reciprocal root r
    dy = |scale| r (|x - m| (rho + 3 u) + dm + u (|x| + 2 |m|)) + u |bias|
        where u (|x| + 2 |m|) lets y be x (scale r) + (bias - m scale r).

Where dv exceeds half of v + 1e-8 the variance of a right kernel may be anything down to zero (a negative one
must be caught), and the reciprocal root anything up to 1e4: a constant row of a value that is no short binary
fraction, say. The same happens, and only finite numbers are asked for, where |m| / sigma is beyond 30.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from grader.problems import bounds
from grader.problems.contents import UNSAMPLED
from grader.problems.distributions import STREAMS, build_case, build_cases, generator, normal, with_one_huge
from grader.problems.grid import MAGNITUDES, with_grid
from grader.problems.operations import Operation, dense, mapped, reduced, zipped
from grader.problems.problem import (
    ArrayParameter,
    Budget,
    Candidate,
    Case,
    Expectation,
    Inputs,
    KernelProblem,
    Range,
    Role,
    ScalarParameter,
    Slices,
    Space,
    StreamParameter,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Array = NDArray[np.float64]

EPSILON = 1e-8
ILL_CONDITIONED = 8.0  # times 1 / sqrt(EPSILON): the reciprocal root of a variance that rounding made up

SMALL, BORDER, LARGE = "small hidden sizes", "hidden sizes around a border", "large hidden sizes"
OFFSET, VARIANCE, CONSTANT = "large offset", "small variance", "constant rows"
MANY = "many rows"
GROUPS = (SMALL, BORDER, LARGE, OFFSET, VARIANCE, CONSTANT, MANY, STREAMS)


RANGES = {"batch_size": Range(1, 1 << 21), "hidden_dim": Range(4, 8192, 4)}


def sizes(rows: int, hidden: int) -> Mapping[str, int]:
    """The sizes of one case in the words of the entry point."""
    return {"batch_size": rows, "hidden_dim": hidden}


def cases(seed: int) -> tuple[Case, ...]:
    """Fixed shapes with fresh content, and a few hidden sizes drawn from the seed."""
    draw = generator(seed)
    small, large = (4 * int(draw.integers(*limits)) for limits in ((4, 8), (260, 1000)))
    table = [
        (SMALL, sizes(5, 4), "normal"),
        (SMALL, sizes(1, 64), "normal"),
        (SMALL, sizes(7, 12), "normal"),
        (SMALL, sizes(7, small), "normal"),
        *((BORDER, sizes(5, hidden), "normal") for hidden in (32, 36, 100, 128, 252, 256, 260)),
        *((BORDER, sizes(5, hidden), "normal") for hidden in (1000, 1024, 1028)),
        (LARGE, sizes(3, large), "normal"),
        *((LARGE, sizes(3, hidden), "normal") for hidden in (1536, 2048)),
        (LARGE, sizes(3, 4096), "normal"),
        (LARGE, sizes(3, 4100), "normal"),
        (LARGE, sizes(3, 8192), "normal"),
        (OFFSET, sizes(5, 64), "mean / sigma 10"),
        (OFFSET, sizes(5, 1000), "mean / sigma 29"),
        (OFFSET, sizes(5, 256), "mean / sigma 1000"),
        (OFFSET, sizes(5, 500), "one huge element"),
        (VARIANCE, sizes(5, 36), "sigma 1e-4"),
        (VARIANCE, sizes(5, 512), "sigma 1e-4"),
        (VARIANCE, sizes(5, 100), "sigma 1e-20"),
        (CONSTANT, sizes(9, 256), "exact constants"),
        (CONSTANT, sizes(9, 100), "constants of 0.1"),
        (CONSTANT, sizes(64, 100), "constants of 1 to 16"),
        (MANY, sizes(4101, 256), "normal"),
        (MANY, sizes(66, 4096), "normal"),
        (MANY, sizes(1_050_011, 4), "normal"),
        (MANY, sizes(4100, 68), "normal"),
        (STREAMS, sizes(33, 100), "normal"),
        (STREAMS, sizes(4, 4100), "normal"),
        (STREAMS, sizes(33, 256), "normal"),
    ]
    return build_cases(seed, table)


def timing_cases(seed: int) -> tuple[Case, ...]:
    """Two launch-bound shapes and two that are larger than an L2 of 50 MB."""
    table = [
        ("small", sizes(1024, 256), "normal"),
        ("small", sizes(5120, 256), "normal"),
        ("large", sizes(16_384, 1024), "normal"),
        ("large", sizes(8192, 4096), "normal"),
    ]
    return build_cases(seed, table)


def _rows(random: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Rows of their own mean and deviation."""
    deviation = random.uniform(0.5, 2.0, (shape[0], 1)).astype(np.float32)
    return normal(random, shape) * deviation + normal(random, (shape[0], 1))


def _shifted(random: np.random.Generator, shape: tuple[int, int], ratio: float) -> Floats:
    """Rows whose |mean| is ``ratio`` sample deviations, of either sign."""
    values = normal(random, shape)
    values = (values - values.mean(-1, keepdims=True)) / values.std(-1, keepdims=True)
    sign = random.choice(np.array([-1, 1], np.float32), (shape[0], 1))
    return np.asarray(values + np.float32(ratio) * sign, np.float32)


def _constants(random: np.random.Generator, shape: tuple[int, int]) -> Floats:
    values = random.choice(np.array([-3, -0.5, 0, 0.25, 1, 4], np.float32), (shape[0], 1))
    return np.repeat(values, shape[1], axis=1)


CONTENTS: Mapping[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = {
    **UNSAMPLED,
    "normal": _rows,
    "mean / sigma 10": lambda random, shape: _shifted(random, shape, 10),
    "mean / sigma 29": lambda random, shape: _shifted(random, shape, 29),
    "mean / sigma 1000": lambda random, shape: _shifted(random, shape, 1000),
    "one huge element": lambda random, shape: with_one_huge(random, normal(random, shape), 10_000),
    "sigma 1e-4": lambda random, shape: normal(random, shape, scale=1e-4),
    "sigma 1e-20": lambda random, shape: normal(random, shape, scale=1e-20),
    "exact constants": _constants,
    "constants of 1 to 16": lambda random, shape: np.repeat(
        random.uniform(1, 16, (shape[0], 1)).astype(np.float32), shape[1], axis=1
    ),
    "constants of 0.1": lambda _, shape: np.full(shape, 0.1, np.float32),
}


def inputs(case: Case) -> Inputs:
    """Rows [batch, hidden], scale and bias [hidden]."""
    random = generator(case.seed)
    rows, hidden = case.sizes["batch_size"], case.sizes["hidden_dim"]
    return Inputs(
        arrays={
            "inp": CONTENTS[case.distribution](random, (rows, hidden)),
            "scale": normal(random, (hidden,), scale=0.5, mean=1),
            "bias": normal(random, (hidden,)),
        },
        outputs={"ln_res": (rows, hidden), "vars": (rows,), "means": (rows,)},
        scalars={"batch_size": rows, "hidden_dim": hidden},
    )


def oracle(case: Case, data: Inputs) -> Mapping[str, Expectation]:
    """LayerNorm in float64; ``vars`` with or without epsilon."""
    x, scale, bias = data.wide("inp"), data.wide("scale"), data.wide("bias")
    precision = bounds.PRECISIONS["float32"]
    unit, hidden = precision.unit, x.shape[1]
    expected = torch.nn.functional.layer_norm(
        torch.from_numpy(x), (hidden,), torch.from_numpy(scale), torch.from_numpy(bias), EPSILON
    ).numpy()
    variance_of, mean_of = torch.var_mean(torch.from_numpy(x), dim=1, correction=0, keepdim=True)
    variance, mean = variance_of.numpy(), mean_of.numpy()

    mean_error = bounds.sum_error(x, 1, 0, unit) / hidden + unit * np.abs(mean)
    variance_error = (
        unit * (bounds.additions_of(x, 1) + 4) * (variance + mean**2)
        + 2 * np.abs(mean) * mean_error
        + mean_error**2
        + 2 * unit * mean**2
    )
    if case.distribution == "exact constants":  # every sum and product of these rows is exact in float32
        mean_error, variance_error = np.zeros_like(mean), np.zeros_like(variance)
    condition = variance_error / (variance + EPSILON)
    root = 1 / np.sqrt(variance + EPSILON)
    conditioned = condition < 0.5
    drift = 1 / np.sqrt(1 - np.where(conditioned, condition, 0.0)) - 1 + unit * bounds.QUOTIENT
    root_error = np.where(conditioned, root * drift, ILL_CONDITIONED / np.sqrt(EPSILON))
    centred = np.abs(x - mean)
    error = unit * np.abs(bias) + np.abs(scale) * (
        (centred + mean_error) * root_error
        + root * (mean_error + unit * (3 * centred + np.abs(x) + 2 * np.abs(mean)))
    )

    finite = case.distribution == "mean / sigma 1000"
    variances = tuple(
        Candidate(value, bounds.allowed(variance_error[:, 0] + unit * EPSILON, value, precision))
        for value in (variance[:, 0], variance[:, 0] + EPSILON)
    )
    return {
        "ln_res": Expectation(
            (Candidate(expected, bounds.allowed(error, expected, precision)),),
            np.full(x.shape[0], fill_value=True) if finite else None,
        ),
        "vars": Expectation(variances, np.array(True) if finite else None),
        "means": Expectation(
            (Candidate(mean[:, 0], bounds.allowed(mean_error[:, 0], mean[:, 0], precision)),)
        ),
    }


def allows(sizes: Mapping[str, int], distribution: str) -> bool:
    """The mean of constant rows is exact only where their number has an exact reciprocal."""
    return distribution != "exact constants" or sizes["hidden_dim"].bit_count() == 1


SPACE = Space(
    ranges=RANGES,
    distributions=(*dict.fromkeys(case.distribution for case in cases(0)), *UNSAMPLED),
    elements=lambda sizes: 2 * sizes["batch_size"] * max(8, sizes["hidden_dim"]),
    case=build_case,
    budget=Budget(largest=1 << 19),
    allows=allows,
)


def minimal_bytes(case: Case) -> int:
    """Rows read and written, scale and bias read, statistics written."""
    rows, hidden = case.sizes["batch_size"], case.sizes["hidden_dim"]
    return 4 * (2 * rows * hidden + 2 * hidden + 2 * rows)


def rows(data: Inputs, index: NDArray[np.intp]) -> Inputs:
    """The inputs of the rows in ``index`` alone."""
    chosen = data.arrays["inp"]
    assert chosen is not None
    outputs = {"ln_res": (index.size, chosen.shape[1]), "vars": index.shape, "means": index.shape}
    return Inputs({**data.arrays, "inp": chosen[index]}, outputs, {**data.scalars, "batch_size": index.size})


def fused(arrays: Mapping[str, torch.Tensor], scalars: Mapping[str, float]) -> Callable[[], object]:
    """PyTorch's layer norm with its statistics."""
    hidden = (int(scalars["hidden_dim"]),)
    return lambda: torch.native_layer_norm(arrays["inp"], hidden, arrays["scale"], arrays["bias"], EPSILON)


def _statistics(x: Array) -> tuple[Array, Array]:
    return x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)


def _result(formula: Callable[[Array, Array, Array], Array]) -> Callable[[Inputs], Mapping[str, Array]]:
    """A wrong ``ln_res`` from the rows with mean 0 and variance 1, scale and bias."""

    def outputs(data: Inputs) -> Mapping[str, Array]:
        x = data.wide("inp")
        return {"ln_res": formula((x - _mean(x)) * _root(x), data.wide("scale"), data.wide("bias"))}

    return outputs


def _normal_with(
    centre: Callable[[Array], Array], spread: Callable[[Array], Array]
) -> Callable[[Inputs], Mapping[str, Array]]:
    """A wrong ``ln_res`` from other statistics: scale (x - centre(x)) * spread(x) + bias."""

    def outputs(data: Inputs) -> Mapping[str, Array]:
        x = data.wide("inp")
        return {"ln_res": data.wide("scale") * (x - centre(x)) * spread(x) + data.wide("bias")}

    return outputs


def _mean(x: Array) -> Array:
    return _statistics(x)[0]


def _root(x: Array) -> Array:
    return np.asarray(1 / np.sqrt(_statistics(x)[1] + EPSILON))


def _epsilon(epsilon: float) -> Callable[[Inputs], Mapping[str, Array]]:
    return _normal_with(_mean, lambda x: np.asarray(1 / np.sqrt(_statistics(x)[1] + epsilon)))


def _statistic(
    name: str, formula: Callable[[Array, Array], Array]
) -> Callable[[Inputs], Mapping[str, Array]]:
    """A wrong ``means`` or ``vars`` from mean and variance."""
    return lambda data: {name: formula(*(part[:, 0] for part in _statistics(data.wide("inp"))))}


def _without_mean(data: Inputs) -> Mapping[str, Array]:
    x = data.wide("inp")
    square = (x**2).mean(axis=1, keepdims=True)
    return {
        "vars": square[:, 0],
        "ln_res": data.wide("scale") * x / np.sqrt(square + EPSILON) + data.wide("bias"),
    }


def _unbiased(data: Inputs) -> Mapping[str, Array]:
    x = data.wide("inp")
    variance = x.var(axis=1, keepdims=True, ddof=1)
    return {
        "vars": variance[:, 0],
        "ln_res": data.wide("scale") * (x - _mean(x)) / np.sqrt(variance + EPSILON) + data.wide("bias"),
    }


def _without_last(data: Inputs) -> Mapping[str, Array]:
    x = data.wide("inp")
    mean = x[:, :-1].sum(axis=1, keepdims=True) / x.shape[1]
    variance = ((x[:, :-1] - mean) ** 2).sum(axis=1, keepdims=True) / x.shape[1]
    result = data.wide("scale") * (x - mean) / np.sqrt(variance + EPSILON) + data.wide("bias")
    return {"means": mean[:, 0], "vars": variance[:, 0], "ln_res": result}


def unfused(case: Case) -> tuple[Operation, ...]:
    """Mean, subtract, square, mean, add epsilon, root, divide, scale, shift."""
    shape = rows, hidden = case.sizes["batch_size"], case.sizes["hidden_dim"]
    inp, means, variances = dense("inp", *shape), dense("means", rows, 1), dense("vars", rows, 1)
    centred, root = dense("centred", *shape), dense("root", rows, 1)
    return (
        reduced("total", "sum", inp, axis=1),
        mapped("means", "multiply constant", dense("total", rows, 1), 1 / hidden),
        zipped("centred", "subtract", inp, means),
        zipped("squared", "multiply", centred, centred),
        reduced("total", "sum", dense("squared", *shape), axis=1),
        mapped("vars", "multiply constant", dense("total", rows, 1), 1 / hidden),
        mapped("with_epsilon", "add constant", variances, EPSILON),
        mapped("root", "sqrt", dense("with_epsilon", rows, 1)),
        zipped("normal", "divide", centred, root),
        zipped("scaled", "multiply", dense("normal", *shape), dense("scale", 1, hidden)),
        zipped("ln_res", "add", dense("scaled", *shape), dense("bias", 1, hidden)),
    )


def one_pass(case: Case) -> tuple[Operation, ...]:
    """The unfused program of a kernel that computes the variance as E[x^2] - E[x]^2."""
    shape = rows, hidden = case.sizes["batch_size"], case.sizes["hidden_dim"]
    inp, total, means = dense("inp", *shape), dense("total", rows, 1), dense("means", rows, 1)
    squared = zipped("squared", "multiply", inp, inp)
    two_pass = unfused(case)
    return (
        *two_pass[:2],
        squared,
        reduced("total", "sum", squared.output, axis=1),
        mapped("mean square", "multiply constant", total, 1 / hidden),
        zipped("square", "multiply", means, means),
        zipped("vars", "subtract", dense("mean square", rows, 1), dense("square", rows, 1)),
        two_pass[2],
        *two_pass[6:],
    )


PROBLEM = KernelProblem(
    id="layernorm_forward",
    file="layernorm_kernel.cu",
    entry_point="launch_layernorm",
    parameters=(
        ArrayParameter("ln_res", Role.OUTPUT),
        ArrayParameter("vars", Role.OUTPUT),
        ArrayParameter("means", Role.OUTPUT),
        ArrayParameter("inp", Role.INPUT),
        ArrayParameter("scale", Role.INPUT),
        ArrayParameter("bias", Role.INPUT),
        ScalarParameter("batch_size", "int"),
        ScalarParameter("hidden_dim", "int"),
        StreamParameter("stream"),
    ),
    groups=(*GROUPS, MAGNITUDES),
    cases=with_grid(cases, SPACE),
    timing_cases=timing_cases,
    inputs=inputs,
    oracle=oracle,
    minimal_bytes=minimal_bytes,
    unfused=unfused,
    other_ways=(one_pass,),
    slices=(Slices(("ln_res", "vars", "means"), lambda case: case.sizes["batch_size"], rows),),
    turning=("inp", "ln_res", "vars", "means"),
    fused=fused,
    space=SPACE,
    bugs={
        "the mean is not subtracted": _normal_with(np.zeros_like, _root),
        "the mean is not subtracted, in the variance neither": _without_mean,
        "the division by the standard deviation is missing": _normal_with(_mean, np.ones_like),
        "divided by the variance instead of its root": _normal_with(_mean, lambda x: _root(x) ** 2),
        "multiplied with the standard deviation instead of divided by it": _normal_with(
            _mean, lambda x: 1 / _root(x)
        ),
        "the variance is E[x^2], without subtracting the square of the mean": _normal_with(
            _mean, lambda x: np.asarray(1 / np.sqrt((x**2).mean(axis=1, keepdims=True) + EPSILON))
        ),
        "epsilon is too large: 1e-3 instead of 1e-8": _epsilon(1e-3),
        "epsilon is too large: 1e-5 instead of 1e-8": _epsilon(1e-5),
        "epsilon is too large: 1e-6 instead of 1e-8": _epsilon(1e-6),
        "epsilon is added twice under the root": _epsilon(2 * EPSILON),
        "epsilon is added twice: under the root, and to the standard deviation": _normal_with(
            _mean, lambda x: 1 / (np.sqrt(_statistics(x)[1] + EPSILON) + EPSILON)
        ),
        "epsilon under the root is missing": _epsilon(0.0),
        "epsilon is added to the standard deviation instead of the variance": _normal_with(
            _mean, lambda x: 1 / (np.sqrt(_statistics(x)[1]) + EPSILON)
        ),
        "scale and bias are swapped": _result(lambda h, scale, bias: bias * h + scale),
        "bias is not added": _result(lambda h, scale, _: scale * h),
        "scale is not applied": _result(lambda h, _, bias: h + bias),
        "scale and bias are not applied": _result(lambda h, _scale, _bias: h),
        "the variance is unbiased: divided by n - 1 instead of n": _unbiased,
        "the last column is missing in mean and variance": _without_last,
        "vars holds the standard deviation, not the variance": _statistic(
            "vars", lambda _, v: np.sqrt(v + EPSILON)
        ),
        "vars holds the reciprocal of the standard deviation, not the variance": _statistic(
            "vars", lambda _, v: 1 / np.sqrt(v + EPSILON)
        ),
        "vars holds the reciprocal of the variance": _statistic("vars", lambda _, v: 1 / (v + EPSILON)),
        "vars holds E[x^2], without subtracting the square of the mean": _statistic(
            "vars", lambda m, v: v + m * m
        ),
        "vars holds the means": _statistic("vars", lambda m, _: m),
        "means holds the variances": _statistic("means", lambda _, v: v),
    },
)
