"""RMSNorm forward: every row is divided by its root mean square, rounded, then scaled per column.

    rstd = 1 / sqrt(mean(x^2) + epsilon),   y = round(x rstd) weight        round: to the type of x

Bounds, with n = x rstd, rho of ``shapes`` and s(n) the error of storing n in the type:
    drstd = rstd rho
    dy    = |weight| (|n| (rho + u) + s(n))      without the rounding of n y is right as well
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grader.problems import bounds
from grader.problems.distributions import STREAMS, generator
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
    EPSILON,
    GROUPS,
    TYPES,
    UNIT,
    VALUES,
    content,
    graded,
    hidden_sizes,
    roots,
    space,
    stored,
    timing_cases,
    weights,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import torch
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def cases(seed: int) -> tuple[Case, ...]:
    """Fixed shapes with fresh content, and a few hidden sizes drawn from the seed."""
    table = (
        (VALUES, "float32", 5, 64, "numbers of 1e-25"),
        (STREAMS, "float32", 5, 1024, "normal"),
    )
    return graded(seed, hidden_sizes(generator(seed)), table, few=8, some=5)


def inputs(case: Case) -> Inputs:
    """Rows x [rows, hidden] and weight [hidden]."""
    random = generator(case.seed)
    rows, hidden = case.sizes["rows"], case.sizes["hidden"]
    return Inputs(
        arrays={"x": stored(content(random, case), case), "weight": weights(random, case)},
        outputs={"y": (rows, hidden), "rstd": (rows,)},
        scalars={"epsilon": EPSILON, "rows": rows, "hidden": hidden},
    )


def oracle(case: Case, data: Inputs) -> Mapping[str, Expectation]:
    """Both outputs in float64."""
    x, weight, precision = data.wide("x"), data.wide("weight"), bounds.PRECISIONS[case.dtype]
    root = roots(x)
    normal = x * root.exact
    error = np.abs(normal) * (root.relative + UNIT)
    error = np.abs(weight) * (error + bounds.storing(normal, precision))
    rstd, rstd_error = (part[:, 0] for part in (root.exact, root.exact * root.relative))
    y = normal * weight
    return {
        "y": Expectation((Candidate(y, bounds.allowed(error, y, precision)),)),
        "rstd": Expectation(
            (Candidate(rstd, bounds.allowed(rstd_error, rstd, bounds.PRECISIONS["float32"])),)
        ),
    }


def minimal_bytes(case: Case) -> int:
    """X and weight read; y and rstd written."""
    rows, hidden = case.sizes["rows"], case.sizes["hidden"]
    return (4 if case.dtype == "float32" else 2) * (2 * rows * hidden + hidden) + 4 * rows


def some_rows(data: Inputs, index: NDArray[np.intp]) -> Inputs:
    """The inputs of the rows in ``index`` alone."""
    x = data.arrays["x"]
    assert x is not None
    outputs = {"y": (index.size, x.shape[1]), "rstd": index.shape}
    return Inputs({**data.arrays, "x": x[index]}, outputs, {**data.scalars, "rows": index.size})


def fused(arrays: Mapping[str, torch.Tensor], scalars: Mapping[str, float]) -> Callable[[], object]:
    """PyTorch's own operator, which does not return rstd."""
    from torch.nn.functional import rms_norm  # noqa: PLC0415 - only timing needs PyTorch here

    x, weight = arrays["x"], arrays["weight"]
    return lambda: rms_norm(x, (int(scalars["hidden"]),), weight, scalars["epsilon"])


def _y(formula: Callable[[Array, Array, Array], Array]) -> Callable[[Inputs], Mapping[str, Array]]:
    """A wrong ``y`` from x, the mean square of its rows [rows, 1] and weight."""

    def outputs(data: Inputs) -> Mapping[str, Array]:
        x = data.wide("x")
        return {"y": formula(x, (x * x).mean(axis=1, keepdims=True), data.wide("weight"))}

    return outputs


def _rstd(formula: Callable[[Array], Array]) -> Callable[[Inputs], Mapping[str, Array]]:
    """A wrong ``rstd`` from the mean squares."""
    return lambda data: {"rstd": formula((data.wide("x") ** 2).mean(axis=1))}


def _from(statistic: Callable[[Array], Array]) -> Callable[[Inputs], Mapping[str, Array]]:
    """Both outputs from another statistic of the rows [rows, 1] than 1 / sqrt(mean(x^2) + epsilon)."""

    def outputs(data: Inputs) -> Mapping[str, Array]:
        x = data.wide("x")
        root = statistic(x)
        return {"y": x * root * data.wide("weight"), "rstd": root[:, 0]}

    return outputs


def _root_of(square: Callable[[Array], Array]) -> Callable[[Inputs], Mapping[str, Array]]:
    return _from(lambda x: np.asarray(1 / np.sqrt(square(x) + EPSILON)))


SPACE = space(cases(0), 2)
PROBLEM = several_types(
    KernelProblem(
        id="rmsnorm_forward",
        file="rmsnorm_kernel.cu",
        entry_point="launch_rmsnorm_forward",
        parameters=(
            ArrayParameter("y", Role.OUTPUT, ANY_TYPE),
            ArrayParameter("rstd", Role.OUTPUT),
            ArrayParameter("x", Role.INPUT, ANY_TYPE),
            ArrayParameter("weight", Role.INPUT, ANY_TYPE),
            ScalarParameter("epsilon", "float"),
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
        slices=(Slices(("y", "rstd"), lambda case: case.sizes["rows"], some_rows),),
        turning=("x", "y", "rstd"),
        fused=fused,
        space=SPACE,
        bugs={
            "the root is missing: divided by the mean square": _from(
                lambda x: 1 / ((x * x).mean(axis=1, keepdims=True) + EPSILON)
            ),
            "divided by the root of the sum instead of the mean": _root_of(
                lambda x: (x * x).sum(axis=1, keepdims=True)
            ),
            "the mean of the row is subtracted first, as in LayerNorm": _root_of(
                lambda x: x.var(axis=1, keepdims=True)
            ),
            "divided by n - 1 instead of n": _root_of(
                lambda x: (x * x).sum(axis=1, keepdims=True) / max(1, x.shape[1] - 1)
            ),
            "epsilon is added to the root instead of the mean square": _from(
                lambda x: 1 / (np.sqrt((x * x).mean(axis=1, keepdims=True)) + EPSILON)
            ),
            "epsilon is divided by hidden as well: add it to the mean, not to the sum": _root_of(
                lambda x: (x * x).mean(axis=1, keepdims=True) + EPSILON / x.shape[1] - EPSILON
            ),
            "divided by the mean of absolute values": _from(
                lambda x: 1 / (np.abs(x).mean(axis=1, keepdims=True) + EPSILON)
            ),
            "epsilon is missing": _from(lambda x: 1 / np.sqrt((x * x).mean(axis=1, keepdims=True))),
            "epsilon is 1e-5 instead of the one that is passed": _from(
                lambda x: 1 / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5)
            ),
            "weight is not applied": _y(lambda x, square, _: x / np.sqrt(square + EPSILON)),
            "1 + weight is applied instead of weight": _y(
                lambda x, square, weight: x / np.sqrt(square + EPSILON) * (1 + weight)
            ),
            "x is only scaled by weight": _y(lambda x, _square, weight: x * weight),
            "rstd holds the root mean square, not its reciprocal": _rstd(lambda q: np.sqrt(q + EPSILON)),
            "rstd holds the mean square": _rstd(lambda q: q),
        },
    ),
    TYPES,
)
