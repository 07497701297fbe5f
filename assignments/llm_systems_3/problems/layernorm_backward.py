"""LayerNorm backward: gradients of scale, bias and input from the incoming gradient g and the statistics.

    r = 1 / sqrt(vars)  (or with epsilon again),   h = (x - means) r,   d = g gamma
    gamma_grad = sum_rows g h,   betta_grad = sum_rows g
    inp_grad = r (d - (sum_cols d + h sum_cols d h) / n)

Bounds, from the pieces of ``bounds``; the statistics are given, so their own error does not count:
    dh = u ((QUOTIENT + 2) |h| + 2 (|x| + |m|) r)        also as x r - m r
    betta_grad:  sum_error(g)
    gamma_grad:  sum_error(g h, 2) + min(sum |g| dh, LUCK sqrt(sum (g dh)^2))
    inp_grad:    r (2 u |d| + (dA + |h| dB + |B| dh + 4 u (|A| + |h B|)) / n) + u (QUOTIENT + 1) |inp_grad|
        with A = sum_cols d, dA = sum_error(d, 1), B = sum_cols d h, dB = sum_error(d h, 2) + sum |d| dh
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from grader.problems import bounds
from grader.problems.contents import FIRST_ALIKE, UNSAMPLED
from grader.problems.distributions import STREAMS, build_case, build_cases, generator, normal
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
    OnDemand,
    Role,
    ScalarParameter,
    Slices,
    Space,
    StreamParameter,
)

from .layernorm_forward import CONTENTS, EPSILON, RANGES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Array = NDArray[np.float64]

SMALL, BORDER, LARGE = "small hidden sizes", "hidden sizes around a border", "large hidden sizes"
TILES, OFFSET, VARIANCE = "row counts around a tile border", "large offset", "small variance"
TINY, GRADIENTS, MANY = "tiny gradients", "large gradients", "many rows"
FEW_COLUMNS = 32
_PRECISION = bounds.PRECISIONS["float32"]

GROUPS = (SMALL, BORDER, LARGE, TILES, OFFSET, VARIANCE, TINY, GRADIENTS, MANY, STREAMS)


def sizes(rows: int, hidden: int) -> Mapping[str, int]:
    """The sizes of one case in the words of the entry point."""
    return {"batch_size": rows, "hidden_dim": hidden}


def cases(seed: int) -> tuple[Case, ...]:
    """Fixed shapes with fresh content, and a few sizes drawn from the seed."""
    draw = generator(seed)
    small, large = (4 * int(draw.integers(*limits)) for limits in ((4, 8), (260, 1000)))
    rows = int(draw.integers(71, 128))
    borders = (32, 36, 96, 132, 160, 192, 252, 256, 260, 384, 768, 1000, 1024, 1028)
    table = [
        (SMALL, sizes(32, 4), "normal"),
        (SMALL, sizes(32, 12), "normal"),
        (SMALL, sizes(32, small), "normal"),
        *((BORDER, sizes(32, hidden), "normal") for hidden in borders),
        (LARGE, sizes(4, large), "normal"),
        *((LARGE, sizes(4, hidden), "normal") for hidden in (1536, 2048)),
        (LARGE, sizes(4, 4100), "normal"),
        (LARGE, sizes(4, 8192), "normal"),
        *((TILES, sizes(count, 64), "normal") for count in (1, 5, 31, 33, 70, rows)),
        (OFFSET, sizes(32, 96), "mean / sigma 29"),
        (VARIANCE, sizes(32, 64), "sigma 0.02"),
        (TINY, sizes(32, 96), "gradients of 1e-20"),
        (GRADIENTS, sizes(32, 96), "gradients around 100"),
        (GRADIENTS, sizes(32, 96), "zeros in gamma"),
        (MANY, sizes(1056, 260), "normal"),
        (MANY, sizes(66, 4096), "normal"),
        (MANY, sizes(8200, 132), "normal"),
        (MANY, sizes(1_050_011, 4), "normal"),
        (STREAMS, sizes(64, 256), "normal"),
        (STREAMS, sizes(2, 4100), "normal"),
        (STREAMS, sizes(520, 36), "normal"),
    ]
    return build_cases(seed, table, both_streams=STREAMS)


def timing_cases(seed: int) -> tuple[Case, ...]:
    """Two launch-bound shapes and two that are larger than an L2 of 50 MB."""
    table = [
        ("small", sizes(1024, 256), "normal"),
        ("small", sizes(5120, 256), "normal"),
        ("large", sizes(16_384, 1024), "normal"),
        ("large", sizes(4096, 4096), "normal"),
    ]
    return build_cases(seed, table)


_ROWS: Mapping[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = {
    **CONTENTS,
    "sigma 0.02": lambda random, shape: normal(random, shape, scale=0.02),
}

_GRADIENTS: Mapping[str, Callable[[np.random.Generator, tuple[int, ...]], Floats]] = {
    "gradients of 1e-20": lambda random, shape: normal(random, shape, scale=1e-20),
    "gradients around 100": lambda random, shape: normal(random, shape, mean=100),
}


def inputs(case: Case) -> Inputs:
    """Gradients and rows [batch, hidden], scale and bias [hidden], statistics [batch] of the rows."""
    random = generator(case.seed)
    shape = case.sizes["batch_size"], case.sizes["hidden_dim"]
    rows = _ROWS.get(case.distribution, CONTENTS["normal"])(random, shape)
    gradients = _GRADIENTS.get(case.distribution, normal)(random, shape)
    gamma = normal(random, (shape[1],), scale=0.5, mean=1)
    if case.distribution == "zeros in gamma":
        gamma[::5] = 0
    return Inputs(
        arrays={
            "out_grad": gradients,
            "inp": rows,
            "gamma": gamma,
            "betta": normal(random, (shape[1],)),
            "vars": rows.var(axis=1, dtype=np.float64).clip(1e-4).astype(np.float32),
            "means": rows.mean(axis=1, dtype=np.float64).astype(np.float32),
        },
        outputs={"gamma_grad": (shape[1],), "betta_grad": (shape[1],), "inp_grad": shape},
        scalars={"batch_size": shape[0], "hidden_dim": shape[1]},
    )


def oracle(case: Case, data: Inputs) -> Mapping[str, Expectation]:  # noqa: ARG001 - the shape of a problem
    """The gradients by PyTorch's own rule in float64, with ``vars`` as given or epsilon added again."""
    gradients = {"gamma_grad": _gamma_grad, "betta_grad": _betta_grad, "inp_grad": _inp_grad}
    return OnDemand({name: partial(_expectation, data, gradient) for name, gradient in gradients.items()})


def _expectation(data: Inputs, gradient: Callable[[Inputs, float], Candidate]) -> Expectation:
    return Expectation((gradient(data, 0.0),), further=lambda: (gradient(data, EPSILON),))


def _exact(data: Inputs, epsilon: float, index: int) -> Array:
    """One of the gradients of input, scale and bias in float64."""
    root = 1 / np.sqrt(data.wide("vars")[:, None] + epsilon)
    arrays = (*(data.wide(name) for name in ("out_grad", "inp")), data.wide("means")[:, None], root)
    incoming, rows, means, roots = (torch.from_numpy(array) for array in arrays)
    scale, shift = (torch.from_numpy(data.wide(name)) for name in ("gamma", "betta"))
    output_mask = tuple(number == index for number in range(3))
    gradients = torch.ops.aten.native_layer_norm_backward(
        incoming, rows, (rows.shape[1],), means, roots, scale, shift, output_mask
    )
    gradient: Array = gradients[index].numpy()
    return gradient


def _by_columns(array: Array) -> Array:
    """``array`` as sums over few columns, and over as many rows, are fastest."""
    return np.asfortranarray(array) if array.shape[-1] < FEW_COLUMNS else array


def _statistics(data: Inputs, epsilon: float) -> tuple[Array, Array, Array, Array]:
    """The h and dh of this file's first lines, and m and r as columns."""
    x, mean = _by_columns(data.wide("inp")), data.wide("means")[:, None]
    root = 1 / np.sqrt(data.wide("vars")[:, None] + epsilon)
    h = x - mean
    h *= root
    h_error = np.abs(x, out=x)
    h_error += np.abs(mean)
    h_error *= 2 * _PRECISION.unit * root
    h_error += _PRECISION.unit * (bounds.QUOTIENT + 2) * np.abs(h)
    return h, h_error, mean, root


def _inp_grad(data: Inputs, epsilon: float) -> Candidate:
    h, h_error, _, root = _statistics(data, epsilon)
    unit, gradient = _PRECISION.unit, _exact(data, epsilon, 0)
    d = _by_columns(data.wide("out_grad"))
    d *= data.wide("gamma")
    d_h = d * h
    a_size, b_size = (np.abs(terms.sum(axis=1, keepdims=True)) for terms in (d, d_h))
    a_error = bounds.sum_error(d, 1, 1, unit)
    d_size = np.abs(d, out=d)
    b_error = bounds.sum_error(d_h, 1, 2, unit) + np.einsum("ij,ij->i", d_size, h_error)[:, None]
    share = root / h.shape[1]
    error = np.abs(h, out=h)
    error *= share * (b_error + 4 * unit * b_size)
    h_error *= share * b_size
    error += h_error
    d_size *= 2 * unit * root
    error += d_size
    error += share * (a_error + 4 * unit * a_size)
    error += unit * (bounds.QUOTIENT + 1) * np.abs(_by_columns(gradient))
    return Candidate(gradient, bounds.allowed(error, gradient, _PRECISION))


def _gamma_grad(data: Inputs, epsilon: float) -> Candidate:
    h, h_error, *_ = _statistics(data, epsilon)
    unit, gradient, g = _PRECISION.unit, _exact(data, epsilon, 1), _by_columns(data.wide("out_grad"))
    h *= g
    h_error *= np.abs(g, out=g)
    length = np.sqrt(np.einsum("ij,ij->j", h_error, h_error))
    of_terms = np.minimum(h_error.sum(axis=0), bounds.LUCK * length)
    error = bounds.sum_error(h, 0, 2, unit)[0] + of_terms
    return Candidate(gradient, bounds.allowed(error, gradient, _PRECISION))


def _betta_grad(data: Inputs, epsilon: float) -> Candidate:
    gradient, g = _exact(data, epsilon, 2), _by_columns(data.wide("out_grad"))
    error = bounds.sum_error(g, 0, 0, _PRECISION.unit)[0]
    return Candidate(gradient, bounds.allowed(error, gradient, _PRECISION))


SPACE = Space(
    ranges=RANGES,
    distributions=(
        *dict.fromkeys(case.distribution for case in cases(0)),
        *(
            name for name in UNSAMPLED if name != FIRST_ALIKE
        ),  # the variance of an equal row is not the given one
    ),
    elements=lambda sizes: 3 * sizes["batch_size"] * max(8, sizes["hidden_dim"]),
    case=build_case,
    budget=Budget(largest=3 << 18),
)


def minimal_bytes(case: Case) -> int:
    """Gradients, rows, statistics and gamma read; the three gradients written."""
    rows, hidden = case.sizes["batch_size"], case.sizes["hidden_dim"]
    return 4 * (3 * rows * hidden + 2 * rows + 3 * hidden)


def rows(data: Inputs, index: NDArray[np.intp]) -> Inputs:
    """Some rows alone, which is enough for their ``inp_grad``."""
    return _part(data, dict.fromkeys(("out_grad", "inp", "vars", "means"), (index,)))


def columns(data: Inputs, index: NDArray[np.intp]) -> Inputs:
    """Some columns alone, which is enough for their sums."""
    across = {name: (slice(None), index) for name in ("out_grad", "inp")}
    return _part(data, {**across, "gamma": (index,), "betta": (index,)})


def _part(data: Inputs, indices: Mapping[str, tuple[slice | NDArray[np.intp], ...]]) -> Inputs:
    arrays = {
        name: array[indices[name]] if name in indices and array is not None else array
        for name, array in data.arrays.items()
    }
    incoming = arrays["out_grad"]
    assert incoming is not None
    count, hidden = incoming.shape
    outputs = {"gamma_grad": (hidden,), "betta_grad": (hidden,), "inp_grad": (count, hidden)}
    return Inputs(arrays, outputs, {**data.scalars, "batch_size": count, "hidden_dim": hidden})


def fused(arrays: Mapping[str, torch.Tensor], scalars: Mapping[str, float]) -> Callable[[], object]:
    """What autograd calls, with the reciprocal deviations that PyTorch's forward pass leaves it."""
    mean, root = arrays["means"][:, None], arrays["vars"].rsqrt()[:, None]
    hidden = (int(scalars["hidden_dim"]),)
    gradient, x, gamma, betta = (arrays[name] for name in ("out_grad", "inp", "gamma", "betta"))
    return lambda: torch.ops.aten.native_layer_norm_backward(
        gradient, x, hidden, mean, root, gamma, betta, (True, True, True)
    )


def _input_bug(
    formula: Callable[[Array, Array, Array, Array], Array],
) -> Callable[[Inputs], Mapping[str, Array]]:
    """A wrong ``inp_grad`` from d = g gamma, h, r and g."""

    def outputs(data: Inputs) -> Mapping[str, Array]:
        h, root = _normalised(data)
        g = data.wide("out_grad")
        return {"inp_grad": formula(g * data.wide("gamma"), h, root, g)}

    return outputs


def _gamma_bug(
    formula: Callable[[Array, Array, Array, Array], Array],
) -> Callable[[Inputs], Mapping[str, Array]]:
    """A wrong ``gamma_grad`` as the sum over rows of a formula of g, x, m and r."""

    def outputs(data: Inputs) -> Mapping[str, Array]:
        root = _normalised(data)[1]
        terms = formula(data.wide("out_grad"), data.wide("inp"), data.wide("means")[:, None], root)
        return {"gamma_grad": terms.sum(axis=0)}

    return outputs


def _normalised(data: Inputs) -> tuple[Array, Array]:
    root = np.asarray(1 / np.sqrt(data.wide("vars")[:, None]))
    return (data.wide("inp") - data.wide("means")[:, None]) * root, root


def _mean(values: Array) -> Array:
    mean: Array = values.mean(axis=1, keepdims=True)
    return mean


def _from_the_result(data: Inputs) -> Mapping[str, Array]:
    """The gradients of a kernel that takes ``inp`` for what LayerNorm returned: h = (inp - betta) / gamma."""
    g, gamma, root = data.wide("out_grad"), data.wide("gamma"), _normalised(data)[1]
    h, d = (data.wide("inp") - data.wide("betta")) / gamma, g * gamma
    return {
        "gamma_grad": (g * h).sum(axis=0),
        "inp_grad": root * (d - _mean(d) - h * _mean(d * h)),
    }


def _deviation_given(data: Inputs) -> Mapping[str, Array]:
    g, x, mean = data.wide("out_grad"), data.wide("inp"), data.wide("means")[:, None]
    root = 1 / (data.wide("vars")[:, None] + EPSILON)
    h, d = (x - mean) * root, g * data.wide("gamma")
    return {"gamma_grad": (g * h).sum(axis=0), "inp_grad": root * (d - _mean(d) - h * _mean(d * h))}


def _swapped(data: Inputs) -> Mapping[str, Array]:
    g = data.wide("out_grad")
    return {"gamma_grad": g.sum(axis=0), "betta_grad": (g * _normalised(data)[0]).sum(axis=0)}


def _mean_instead_of_sum(data: Inputs) -> Mapping[str, Array]:
    g = data.wide("out_grad")
    return {"gamma_grad": (g * _normalised(data)[0]).mean(axis=0), "betta_grad": g.mean(axis=0)}


def terms(data: Inputs) -> Mapping[str, Array]:
    """The terms [rows, hidden] that the rows add to the sums."""
    g = data.wide("out_grad")
    return {"gamma_grad": g * _normalised(data)[0], "betta_grad": g}


def _epsilon(epsilon: float) -> Callable[[Inputs], Mapping[str, Array]]:
    def outputs(data: Inputs) -> Mapping[str, Array]:
        return {"gamma_grad": _exact(data, epsilon, 1), "inp_grad": _exact(data, epsilon, 0)}

    return outputs


def unfused(case: Case) -> tuple[Operation, ...]:
    """The normalised rows again, then the three sums and the products around them."""
    shape = rows, hidden = case.sizes["batch_size"], case.sizes["hidden_dim"]
    gradient, normal_rows, scaled = (dense(name, *shape) for name in ("out_grad", "normal", "scaled"))
    root = dense("root", rows, 1)
    return (
        zipped("centred", "subtract", dense("inp", *shape), dense("means", rows, 1)),
        mapped("with_epsilon", "add constant", dense("vars", rows, 1), EPSILON),
        mapped("root", "sqrt", dense("with_epsilon", rows, 1)),
        zipped("normal", "divide", dense("centred", *shape), root),
        zipped("product", "multiply", gradient, normal_rows),
        reduced("gamma_grad", "sum", dense("product", *shape), axis=0),
        reduced("betta_grad", "sum", gradient, axis=0),
        zipped("scaled", "multiply", gradient, dense("gamma", 1, hidden)),
        reduced("total", "sum", scaled, axis=1),
        mapped("mean", "multiply constant", dense("total", rows, 1), 1 / hidden),
        zipped("product", "multiply", scaled, normal_rows),
        reduced("total", "sum", dense("product", *shape), axis=1),
        mapped("slope", "multiply constant", dense("total", rows, 1), 1 / hidden),
        zipped("shift", "multiply", normal_rows, dense("slope", rows, 1)),
        zipped("lowered", "subtract", scaled, dense("mean", rows, 1)),
        zipped("straightened", "subtract", dense("lowered", *shape), dense("shift", *shape)),
        zipped("inp_grad", "divide", dense("straightened", *shape), root),
    )


PROBLEM = KernelProblem(
    id="layernorm_backward",
    file="layernorm_kernel.cu",
    entry_point="launch_layernorm_bw",
    parameters=(
        ArrayParameter("gamma_grad", Role.OUTPUT),
        ArrayParameter("betta_grad", Role.OUTPUT, other_names=("beta_grad",)),
        ArrayParameter("inp_grad", Role.OUTPUT),
        ArrayParameter("out_grad", Role.INPUT),
        ArrayParameter("inp", Role.INPUT),
        ArrayParameter("gamma", Role.INPUT),
        ArrayParameter("betta", Role.INPUT, optional=True, other_names=("beta",)),
        ArrayParameter("vars", Role.INPUT),
        ArrayParameter("means", Role.INPUT),
        ScalarParameter("batch_size", "int"),
        ScalarParameter("hidden_dim", "int"),
        StreamParameter("stream_1"),
        StreamParameter("stream_2"),
    ),
    groups=(*GROUPS, MAGNITUDES),
    cases=with_grid(cases, SPACE),
    timing_cases=timing_cases,
    inputs=inputs,
    oracle=oracle,
    minimal_bytes=minimal_bytes,
    unfused=unfused,
    slices=(
        Slices(("inp_grad",), lambda case: case.sizes["batch_size"], rows),
        Slices(("gamma_grad", "betta_grad"), lambda case: case.sizes["hidden_dim"], columns),
    ),
    turning=("out_grad", "inp", "inp_grad", "vars", "means"),
    fused=fused,
    terms=terms,
    space=SPACE,
    bugs={
        "the sum of dxhat is missing": _input_bug(lambda d, h, r, _: r * (d - h * _mean(d * h))),
        "the sum of dxhat * xhat is missing": _input_bug(lambda d, _h, r, _: r * (d - _mean(d))),
        "both sums are missing": _input_bug(lambda d, _h, r, _: r * d),
        "gamma is not applied to the incoming gradient": _input_bug(
            lambda _d, h, r, g: r * (g - _mean(g) - h * _mean(g * h))
        ),
        "the sums are not divided by hidden_dim": _input_bug(
            lambda d, h, r, _: r * (d - d.sum(1, keepdims=True) - h * (d * h).sum(1, keepdims=True))
        ),
        "the last column is missing in the two sums": _input_bug(
            lambda d, h, r, _: (
                r
                * (
                    d
                    - (d[:, :-1].sum(1, keepdims=True) + h * (d * h)[:, :-1].sum(1, keepdims=True))
                    / d.shape[1]
                )
            )
        ),
        "xhat is missing in front of the sum of dxhat * xhat": _input_bug(
            lambda d, h, r, _: r * (d - _mean(d) - _mean(d * h))
        ),
        "the division by the standard deviation is missing": _input_bug(
            lambda d, h, _r, _: d - _mean(d) - h * _mean(d * h)
        ),
        "the sum of dxhat is added instead of subtracted": _input_bug(
            lambda d, h, r, _: r * (d + _mean(d) - h * _mean(d * h))
        ),
        "the sum of dxhat * xhat is added instead of subtracted": _input_bug(
            lambda d, h, r, _: r * (d - _mean(d) + h * _mean(d * h))
        ),
        "divided by the variance instead of its root": _input_bug(
            lambda d, h, r, _: r**2 * (d - _mean(d) - h * _mean(d * h))
        ),
        "the mean is not subtracted": _gamma_bug(lambda g, x, _m, r: g * x * r),
        "xhat is not divided by the standard deviation": _gamma_bug(lambda g, x, m, _r: g * (x - m)),
        "xhat is divided by the variance instead of its root": _gamma_bug(
            lambda g, x, m, r: g * (x - m) * r * r
        ),
        "gamma is missing in the two sums": _input_bug(
            lambda d, h, r, g: r * (d - _mean(g) - h * _mean(g * h))
        ),
        "out_grad is not multiplied by gamma where the two sums are subtracted": _input_bug(
            lambda d, h, r, g: r * (g - _mean(d) - h * _mean(d * h))
        ),
        "inp is taken for the output of LayerNorm, not for its input": _from_the_result,
        "vars is taken for the standard deviation, not for the variance": _deviation_given,
        "gamma_grad and betta_grad are swapped": _swapped,
        "gamma_grad and betta_grad are means over the rows instead of sums": _mean_instead_of_sum,
        "epsilon is too large: 1e-3 instead of 1e-8": _epsilon(1e-3),
        "epsilon is too large: 1e-5 instead of 1e-8": _epsilon(1e-5),
    },
)
