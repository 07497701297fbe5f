"""Softmax backward: the gradient of a row through its weights s, in place on the incoming gradient g.

    D = sum_j g_j s_j
    result_i = s_i (g_i - D)

Bound of result_i, from the pieces of ``bounds``; s_i g_i - s_i D is as good a formula as the one above:
    |s_i| (sum_error(g s, one rounding per term) + 3 u (|g_i| + |D|))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from grader.problems import bounds
from grader.problems.contents import UNSAMPLED
from grader.problems.distributions import STREAMS, build_case, build_cases, generator, normal, with_one_huge
from grader.problems.grid import MAGNITUDES, with_grid
from grader.problems.operations import Operation, dense, reduced, zipped
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

SHORT, BORDER, LONG = "short rows", "lengths around a bucket border", "long rows"
OFFSET, TINY, ZEROS = "large gradients", "tiny gradients", "weights that are zero"
MANY = "many rows"
GROUPS = (SHORT, BORDER, LONG, OFFSET, TINY, ZEROS, MANY, STREAMS)


def sizes(rows: int, length: int) -> Mapping[str, int]:
    """The sizes of one case in the words of the entry point."""
    return {"rows": rows, "softmax_len": length}


def cases(seed: int) -> tuple[Case, ...]:
    """Fixed shapes with fresh content, and a few lengths drawn from the seed.

    Most rows are multiples of 4, so that lengths are judged apart from what happens to a last block of rows.
    """
    draw = generator(seed)
    short, long, odd = (int(draw.integers(*limits)) for limits in ((2, 31), (1026, 2047), (34, 64)))
    borders = (31, 32, 33, 64, 65, 127, 129, 257, 385, 513, 769, 1024, 1025)
    kernels = (12, 24, 64, 128, 256, 384, 512, 768, 1024, 2048)  # as the handout tells them apart, and full
    table = [
        (SHORT, sizes(5, 1), "normal"),
        (SHORT, sizes(8, short), "normal"),
        *((BORDER, sizes(8, length), "normal") for length in borders),
        (LONG, sizes(8, long), "normal"),
        (LONG, sizes(5, 1500), "normal"),
        (LONG, sizes(3, 2047), "normal"),
        (LONG, sizes(4, 2048), "normal"),
        (OFFSET, sizes(8, odd), "gradients around 100"),
        (OFFSET, sizes(8, 700), "gradients around 100"),
        (OFFSET, sizes(5, 130), "one huge gradient"),
        (TINY, sizes(8, 30), "gradients of 1e-20"),
        (TINY, sizes(8, 300), "gradients of 1e-20"),
        *((ZEROS, sizes(*shape), "future mask") for shape in ((8, 30), (9, 50), (8, 1100))),
        (ZEROS, sizes(8, 1000), "one weight of almost 1"),
        (MANY, sizes(1056, 300), "normal"),
        (MANY, sizes(1030, 520), "normal"),
        (MANY, sizes(8200, 40), "normal"),
        (MANY, sizes(1_050_011, 3), "normal"),
        (STREAMS, sizes(33, 70), "normal"),
        *((STREAMS, sizes(5, length), "normal") for length in kernels),
    ]
    return build_cases(seed, table)


def timing_cases(seed: int) -> tuple[Case, ...]:
    """Two launch-bound shapes and two that are larger than an L2 of 50 MB; rows as in softmax forward."""
    table = [
        ("small", sizes(2 * 8 * 64, 64), "normal"),
        ("small", sizes(32 * 8 * 40, 40), "normal"),
        ("large", sizes(8 * 8 * 512, 512), "normal"),
        ("large", sizes(2 * 8 * 1024, 1024), "normal"),
    ]
    return build_cases(seed, table)


def _one_huge(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return with_one_huge(random, normal(random, shape), 10_000)


_GRADIENTS: Mapping[str, Callable[[np.random.Generator, tuple[int, ...]], Floats]] = {
    "gradients around 100": lambda random, shape: normal(random, shape, mean=100),
    "one huge gradient": _one_huge,
    "gradients of 1e-20": lambda random, shape: normal(random, shape, scale=1e-20),
    **UNSAMPLED,
}


def inputs(case: Case) -> Inputs:
    """Gradients [rows, length] and the weights of a softmax over normal scores of the same shape."""
    random = generator(case.seed)
    shape = (case.sizes["rows"], case.sizes["softmax_len"])
    gradients = _GRADIENTS.get(case.distribution, normal)(random, shape)
    scores = normal(random, shape, scale=2)
    if case.distribution == "future mask":
        scores[np.triu(np.ones(shape, np.bool_), k=1)] = -np.inf
    if case.distribution == "one weight of almost 1":
        scores = with_one_huge(random, scores, 30)
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return Inputs(
        arrays={"out_grad": gradients, "soft_inp": scores},
        outputs={},
        scalars={"rows": shape[0], "softmax_len": shape[1]},
    )


def oracle(case: Case, data: Inputs) -> Mapping[str, Expectation]:  # noqa: ARG001 - the shape of a problem
    """The gradient by PyTorch's own rule, in float64."""
    gradients, weights = data.wide("out_grad"), data.wide("soft_inp")
    expected = torch.ops.aten._softmax_backward_data(  # noqa: SLF001 - the rule that autograd applies
        torch.from_numpy(gradients), torch.from_numpy(weights), -1, torch.float64
    ).numpy()
    precision = bounds.PRECISIONS["float32"]
    unit = precision.unit
    products = gradients * weights
    dot = products.sum(axis=-1, keepdims=True)
    error = bounds.sum_error(products, -1, 1, unit) + 3 * unit * (np.abs(gradients) + np.abs(dot))
    tolerance = bounds.allowed(weights * error, expected, precision)
    return {"out_grad": Expectation((Candidate(expected, tolerance),))}


SPACE = Space(
    ranges={"rows": Range(1, 1 << 21), "softmax_len": Range(1, 2048)},
    distributions=(*dict.fromkeys(case.distribution for case in cases(0)), *UNSAMPLED),
    elements=lambda sizes: 2 * sizes["rows"] * max(8, sizes["softmax_len"]),
    case=build_case,
    budget=Budget(largest=1 << 19),
)


def minimal_bytes(case: Case) -> int:
    """Both arrays read, one written."""
    return 4 * 3 * case.sizes["rows"] * case.sizes["softmax_len"]


def rows(data: Inputs, index: NDArray[np.intp]) -> Inputs:
    """The inputs of the rows in ``index`` alone."""
    arrays = {name: array[index] for name, array in data.arrays.items() if array is not None}
    return Inputs(arrays, {}, {**data.scalars, "rows": index.size})


def fused(arrays: Mapping[str, torch.Tensor], _: Mapping[str, float]) -> Callable[[], object]:
    """PyTorch's operator for this gradient, which autograd calls."""
    return lambda: torch.ops.aten._softmax_backward_data(  # noqa: SLF001
        arrays["out_grad"], arrays["soft_inp"], -1, torch.float32
    )


def _bug(formula: Callable[[Array, Array], Array]) -> Callable[[Inputs], Mapping[str, Array]]:
    return lambda data: {"out_grad": formula(data.wide("out_grad"), data.wide("soft_inp"))}


def _dot(gradient: Array, weights: Array) -> Array:
    total: Array = (gradient * weights).sum(axis=-1, keepdims=True)
    return total


def _gradient(g: Array, s: Array) -> Array:
    return s * (g - _dot(g, s))


def _mean(values: Array) -> Array:
    mean: Array = values.mean(axis=-1, keepdims=True)
    return mean


def unfused(case: Case) -> tuple[Operation, ...]:
    """Multiply, sum, subtract, multiply."""
    shape = case.sizes["rows"], case.sizes["softmax_len"]
    gradient, soft = dense("out_grad", *shape), dense("soft_inp", *shape)
    product = zipped("product", "multiply", gradient, soft)
    total = reduced("total", "sum", product.output, axis=1)
    difference = zipped("difference", "subtract", gradient, total.output)
    return product, total, difference, zipped("out_grad", "multiply", soft, difference.output)


PROBLEM = KernelProblem(
    id="softmax_backward",
    file="softmax_kernel.cu",
    entry_point="launch_attn_softmax_bw",
    parameters=(
        ArrayParameter("out_grad", Role.INOUT),
        ArrayParameter("soft_inp", Role.INPUT),
        ScalarParameter("rows", "int"),
        ScalarParameter("softmax_len", "int"),
        StreamParameter("stream"),
    ),
    groups=(*GROUPS, MAGNITUDES),
    cases=with_grid(cases, SPACE),
    timing_cases=timing_cases,
    inputs=inputs,
    oracle=oracle,
    minimal_bytes=minimal_bytes,
    unfused=unfused,
    slices=(Slices(("out_grad",), lambda case: case.sizes["rows"], rows),),
    turning=("out_grad", "soft_inp"),
    fused=fused,
    space=SPACE,
    bugs={
        "the sum of grad * soft is not subtracted": _bug(lambda g, s: s * g),
        "the sum of grad * soft is added instead of subtracted": _bug(lambda g, s: s * (g + _dot(g, s))),
        "the factor soft in front is missing": _bug(lambda g, s: g - _dot(g, s)),
        "soft is multiplied with grad only, not with the sum": _bug(lambda g, s: s * g - _dot(g, s)),
        "the sum of grad is subtracted instead of the sum of grad * soft": _bug(
            lambda g, s: s * (g - g.sum(axis=-1, keepdims=True))
        ),
        "the mean of grad * soft is subtracted instead of their sum": _bug(
            lambda g, s: s * (g - _mean(g * s))
        ),
        "the sum is of soft squared instead of grad * soft": _bug(lambda g, s: s * (g - _dot(s, s))),
        "the sum is of grad squared instead of grad * soft": _bug(lambda g, s: s * (g - _dot(g, g))),
        "the last element of a row is missing in the sum of grad * soft": _bug(
            lambda g, s: s * (g - _dot(g[..., :-1], s[..., :-1]))
        ),
        "grad and soft are swapped": _bug(lambda g, s: g * (s - _dot(g, s))),
        "applied twice: the second time reads what the first has written": _bug(
            lambda g, s: _gradient(_gradient(g, s), s)
        ),
        "the sign is wrong": _bug(lambda g, s: s * (_dot(g, s) - g)),
    },
)
