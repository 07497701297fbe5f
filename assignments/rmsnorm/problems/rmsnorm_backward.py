"""RMSNorm backward: the gradients of x and weight from the reciprocal roots that forward has saved.

    n = x rstd,   g = dy weight
    dx = rstd (g - n mean(g n))
    dweight = sum over rows of dy round(n)                                  round: to the type of x

Bounds, with m = mean(g n), u the rounding unit of float32, v that of the type, s the error of storing a
number in it. A kernel may round n and g to the type, as PyTorch's own autograd does in half precision:
    dm  = (sum_error(g n, three roundings) + 2 v LUCK |g n|_2) / hidden + u |m|
    ddx = rstd (2 u |g| + s(g) + |n| dm + |m| (4 u |n| + s(n))) + u |dx|
    ddweight = sum_error(dy n, two roundings) + 8 v max|dy n|               with and without the rounding
where 8 v max|dy n| lets some n of a column be rounded to the other side, as x rstd is itself rounded. In
float32 v counts as u.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grader.problems import bounds
from grader.problems.distributions import STREAMS, generator, normal
from grader.problems.dtypes import DTYPES
from grader.problems.grid import MAGNITUDES, with_grid
from grader.problems.problem import (
    ANY_TYPE,
    ArrayParameter,
    Candidate,
    Case,
    Expectation,
    Inputs,
    KernelProblem,
    Role,
    ScalarParameter,
    Slices,
    StreamParameter,
    several_types,
)

from .shapes import (
    CANCELLING,
    EPSILON,
    GROUPS,
    MANY,
    TYPES,
    UNIT,
    VALUES,
    content,
    exact_roots,
    graded,
    hidden_sizes,
    space,
    stored,
    timing_cases,
    weights,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import torch
    from numpy.typing import NDArray

    from grader.problems.dtypes import Precision

    Array = NDArray[np.float64]
    Bug = Callable[[Inputs], Mapping[str, Array]]


LARGER_EPSILON = "roots of a larger epsilon"
"""The saved roots say what forward did; a kernel that computes them anew would not know its epsilon."""


def cases(seed: int) -> tuple[Case, ...]:
    """Fixed shapes with fresh content, and a few sizes drawn from the seed."""
    draw = generator(seed)
    drawn = hidden_sizes(draw)
    table = (
        (MANY, "float32", int(draw.integers(71, 128)), 64, "normal"),
        (VALUES, "float32", 40, 96, "gradients of 1e-20"),
        (VALUES, "float32", 40, 96, "gradients around 100"),
        (VALUES, "float32", 40, 96, LARGER_EPSILON),
        *((MANY, "float32", *sizes, "normal") for sizes in ((5000, 512), (540, 4000))),
        *((dtype, dtype, rows, 72, "gradients around 100") for dtype in TYPES[1:] for rows in (4096, 8200)),
        *(("float16", "float16", 64, hidden, CANCELLING) for hidden in (24, 264)),
        (STREAMS, "float32", 520, 64, "normal"),
    )
    return graded(seed, drawn, table, few=40, some=33)


def inputs(case: Case) -> Inputs:
    """Gradients dy and rows x [rows, hidden], weight [hidden], reciprocal roots [rows] of the rows."""
    random = generator(case.seed)
    rows, hidden = case.sizes["rows"], case.sizes["hidden"]
    x = stored(content(random, case), case)
    gradients = {
        "gradients of 1e-20": {"scale": 1e-20},
        "gradients around 100": {"mean": 100.0},
        "numbers of 1e15": {"scale": 1e6},
    }.get(case.distribution, {})
    dy = normal(random, (rows, hidden), **gradients)
    if case.distribution == CANCELLING:
        dy[::2] += np.copysign(np.float32(30_000), dy[::2])
        dy[1::2] -= dy[: rows // 2 * 2 : 2]
    epsilon = 1e-3 if case.distribution == LARGER_EPSILON else EPSILON
    return Inputs(
        arrays={
            "dy": stored(dy, case),
            "x": x,
            "weight": weights(random, case),
            "rstd": exact_roots(x, epsilon).astype(np.float32),
        },
        outputs={"dx": (rows, hidden), "dweight": (hidden,)},
        scalars={"rows": rows, "hidden": hidden},
    )


def oracle(case: Case, data: Inputs) -> Mapping[str, Expectation]:
    """Both gradients in float64."""
    precision = bounds.PRECISIONS[case.dtype]
    word, hidden = precision.word, case.sizes["hidden"]
    g, n, rstd = _parts(data)
    product = g * n
    mean = product.mean(axis=1, keepdims=True)
    length = bounds.LUCK * np.sqrt((product * product).sum(axis=1, keepdims=True))
    mean_error = (bounds.sum_error(product, 1, 3, UNIT) + 2 * word * length) / hidden + UNIT * np.abs(mean)
    dx = rstd * (g - n * mean)
    g_error = 2 * UNIT * np.abs(g) + bounds.storing(g, precision)
    n_error = 4 * UNIT * np.abs(n) + bounds.storing(n, precision)
    error = g_error + np.abs(n) * mean_error + np.abs(mean) * n_error
    return {
        "dx": Expectation((Candidate(dx, bounds.allowed(rstd * error + UNIT * np.abs(dx), dx, precision)),)),
        "dweight": Expectation(
            tuple(_dweight_of(data.wide("dy") * normal, precision) for normal in (_rounded(n, case), n))
        ),
    }


def _rounded(values: Array, case: Case) -> Array:
    return values.astype(DTYPES[case.dtype].storage).astype(np.float64)


def _dweight_of(terms: Array, precision: Precision) -> Candidate:
    """The sum over the rows of ``terms`` [rows, hidden]."""
    dweight = terms.sum(axis=0)
    other_side = 8 * precision.word * np.abs(terms).max(axis=0)
    error = bounds.sum_error(terms, 0, 2, UNIT)[0] + other_side
    return Candidate(dweight, bounds.allowed(error, dweight, precision))


def _parts(data: Inputs) -> tuple[Array, Array, Array]:
    """G and n [rows, hidden], and rstd [rows, 1]."""
    rstd = data.wide("rstd")[:, None]
    return data.wide("dy") * data.wide("weight"), data.wide("x") * rstd, rstd


def minimal_bytes(case: Case) -> int:
    """dy, x, rstd and weight read; dx and dweight written."""
    rows, hidden = case.sizes["rows"], case.sizes["hidden"]
    return (4 if case.dtype == "float32" else 2) * (3 * rows * hidden + 2 * hidden) + 4 * rows


def some_rows(data: Inputs, index: NDArray[np.intp]) -> Inputs:
    """Some rows alone, which is enough for their dx."""
    arrays = {
        name: array[index] if name in {"dy", "x", "rstd"} and array is not None else array
        for name, array in data.arrays.items()
    }
    hidden = data.outputs["dweight"]
    outputs = {"dx": (index.size, *hidden), "dweight": hidden}
    return Inputs(arrays, outputs, {**data.scalars, "rows": index.size})


def some_columns(data: Inputs, index: NDArray[np.intp]) -> Inputs:
    """Some columns alone, which is enough for their dweight."""
    arrays = {
        name: array[..., index] if name != "rstd" and array is not None else array
        for name, array in data.arrays.items()
    }
    rows = data.outputs["dx"][0]
    outputs = {"dx": (rows, index.size), "dweight": index.shape}
    return Inputs(arrays, outputs, {**data.scalars, "hidden": index.size})


def terms(data: Inputs) -> Mapping[str, Array]:
    """The terms [rows, hidden] that the rows add to the sum."""
    return {"dweight": data.wide("dy") * _parts(data)[1]}


def fused(arrays: Mapping[str, torch.Tensor], scalars: Mapping[str, float]) -> Callable[[], object]:
    """Return a call of the function that autograd calls for PyTorch's operator."""
    import torch  # noqa: PLC0415 - only timing needs PyTorch here

    hidden = [int(scalars["hidden"])]
    arguments = (arrays["dy"], arrays["x"], hidden, arrays["rstd"][:, None], arrays["weight"])
    return lambda: torch.ops.aten._fused_rms_norm_backward(*arguments, [True, True])  # noqa: SLF001


def _dx(formula: Callable[[Array, Array, Array, Array], Array]) -> Bug:
    """A wrong ``dx`` from g, n, rstd and dy."""
    return lambda data: {"dx": formula(*_parts(data), data.wide("dy"))}


def _anew(data: Inputs) -> Mapping[str, Array]:
    g, x = data.wide("dy") * data.wide("weight"), data.wide("x")
    rstd = exact_roots(x)[:, None]
    return {"dx": rstd * (g - x * rstd * _mean(g * x * rstd))}


def _mean(values: Array) -> Array:
    mean: Array = values.mean(axis=1, keepdims=True)
    return mean


def _dweight(formula: Callable[[Array, Array, Array], Array]) -> Bug:
    """A wrong ``dweight`` as the sum over rows of a formula of dy, x and rstd."""
    return lambda data: {
        "dweight": formula(data.wide("dy"), data.wide("x"), data.wide("rstd")[:, None]).sum(axis=0)
    }


SPACE = space(cases(0), 3)
PROBLEM = several_types(
    KernelProblem(
        id="rmsnorm_backward",
        file="rmsnorm_kernel.cu",
        entry_point="launch_rmsnorm_backward",
        parameters=(
            ArrayParameter("dx", Role.OUTPUT, ANY_TYPE),
            ArrayParameter("dweight", Role.OUTPUT, ANY_TYPE),
            ArrayParameter("dy", Role.INPUT, ANY_TYPE),
            ArrayParameter("x", Role.INPUT, ANY_TYPE),
            ArrayParameter("weight", Role.INPUT, ANY_TYPE),
            ArrayParameter("rstd", Role.INPUT),
            ScalarParameter("rows", "int"),
            ScalarParameter("hidden", "int"),
            StreamParameter("stream"),
        ),
        groups=(*GROUPS, MAGNITUDES),
        cases=with_grid(cases, SPACE),
        timing_cases=timing_cases,
        inputs=inputs,
        oracle=oracle,
        minimal_bytes=minimal_bytes,
        slices=(
            Slices(("dx",), lambda case: case.sizes["rows"], some_rows),
            Slices(("dweight",), lambda case: case.sizes["hidden"], some_columns),
        ),
        turning=("dy", "x", "dx", "rstd"),
        fused=fused,
        terms=terms,
        space=SPACE,
        bugs={
            "the last column is left out of the mean of g n": _dx(
                lambda g, n, r, _: r * (g - n * (g * n)[:, :-1].sum(axis=1, keepdims=True) / g.shape[1])
            ),
            "the mean of g n is missing": _dx(lambda g, _n, r, _: r * g),
            "n is missing in front of the mean of g n": _dx(lambda g, n, r, _: r * (g - _mean(g * n))),
            "the sum of g n is not divided by hidden": _dx(
                lambda g, n, r, _: r * (g - n * (g * n).sum(axis=1, keepdims=True))
            ),
            "the mean of g n is added instead of subtracted": _dx(
                lambda g, n, r, _: r * (g + n * _mean(g * n))
            ),
            "the mean of g is subtracted as well, as in LayerNorm": _dx(
                lambda g, n, r, _: r * (g - _mean(g) - n * _mean(g * n))
            ),
            "weight is not applied to the incoming gradient": _dx(
                lambda _g, n, r, dy: r * (dy - n * _mean(dy * n))
            ),
            "weight is missing in the mean": _dx(lambda g, n, r, dy: r * (g - n * _mean(dy * n))),
            "the factor rstd is missing": _dx(lambda g, n, _r, _: g - n * _mean(g * n)),
            "x is taken for n in the mean": _dx(lambda g, n, r, _: r * (g - n * _mean(g * n / r))),
            "x is taken for n": _dx(lambda g, n, r, _: r * (g - n / r * _mean(g * n / r))),
            "rstd is taken for the root mean square": _dx(
                lambda g, n, r, _: (g - n / r**2 * _mean(g * n / r**2)) / r
            ),
            "rstd is computed anew from x, instead of taken as it is passed": _anew,
            "x is not multiplied by rstd": _dweight(lambda dy, x, _: dy * x),
            "x is divided by rstd": _dweight(lambda dy, x, r: dy * x / r),
            "x is missing": _dweight(lambda dy, _x, _r: dy),
            "the sum over rows is divided by their number": _dweight(lambda dy, x, r: dy * x * r / len(x)),
        },
    ),
    TYPES,
)
