"""RG-LRU forward: gates, decay and scan in one pass.

    h_t = a_t h_{t-1} + s_t i_t x_t         with the gates of ``gates``

The bound is that of the scan in ``shapes``, where a and b = s i x are off by what the gates are off and b by
three roundings more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grader.problems import bounds
from grader.problems.distributions import generator
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

from .gates import CLOSED, EIGHT, MIDDLE, OPEN, Gates, contents, gates, sigmoid
from .shapes import (
    GROUPS,
    TYPES,
    UNIT,
    VALUES,
    Scan,
    element_bytes,
    graded,
    scan,
    shape_of,
    some_sequences,
    space,
    start_in,
    start_of,
    states,
    timing_cases,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Bug = Callable[[Inputs], Mapping[str, Array]]

WITHOUT_DECAY = "factors of exactly 1"


def cases(seed: int) -> tuple[Case, ...]:
    """Fixed shapes with fresh content, and sizes drawn from the seed."""
    table = (
        (VALUES, "float32", 2, 300, 8, OPEN),
        (VALUES, "float32", 2, 300, 8, CLOSED),
        (VALUES, "float32", 2, 300, 8, MIDDLE),
        (VALUES, "float32", 2, 70, 8, WITHOUT_DECAY),
    )
    return graded(seed, table)


def inputs(case: Case) -> Inputs:
    """X, gx and ga [batch, length, width], C [width], states h0 [batch, width] or none."""
    random = generator(case.seed)
    shape = shape_of(case)
    arrays = contents(random, case)
    if case.distribution == WITHOUT_DECAY:
        ga = arrays["ga"]
        assert ga is not None
        ga[:, ::3] = -200
    return Inputs(
        arrays={**arrays, "h0": start_of(random, case)},
        outputs={"h": shape},
        scalars=dict(zip(("batch", "length", "width"), shape, strict=True)),
    )


def oracle(case: Case, data: Inputs) -> Mapping[str, Expectation]:
    """The states in float64."""
    exact = scanned(gates(data), data)
    allowed = bounds.allowed(exact.error, exact.value, bounds.PRECISIONS[case.dtype])
    return {"h": Expectation((Candidate(exact.value, allowed),))}


def scanned(gate: Gates, data: Inputs) -> Scan:
    """The exact states, and how far those of a right kernel may be from them."""
    b = gate.s * gate.i * data.wide("x")
    b_error = np.abs(b) * (gate.s_off + gate.i_off + 3 * UNIT)
    return scan(gate.a, b, start_in(data), gate.a * gate.a_off, b_error)


def minimal_bytes(case: Case) -> int:
    """X, gx, ga, C and the first states read; h written."""
    batch, length, width = shape_of(case)
    return 4 * element_bytes(case) * batch * length * width + 4 * (batch + 1) * width


def _h(formula: Callable[[Gates, Array], tuple[Array, Array]]) -> Bug:
    """Wrong states from a wrong a and b, a formula of the gates and x."""

    def outputs(data: Inputs) -> Mapping[str, Array]:
        return {"h": states(*formula(gates(data), data.wide("x")), start_in(data))}

    return outputs


def _decay(decay: Callable[[Array, Array], Array]) -> Bug:
    """Wrong states from a wrong d, a formula of r and C."""

    def outputs(data: Inputs) -> Mapping[str, Array]:
        gate = gates(data)
        d = decay(gate.r, data.wide("c"))
        b = np.sqrt(np.maximum(0, -np.expm1(-2 * d))) * gate.i * data.wide("x")
        return {"h": states(np.exp(-d), b, start_in(data))}

    return outputs


def _without_start(data: Inputs) -> Mapping[str, Array]:
    gate = gates(data)
    start = start_in(data)
    return {"h": states(gate.a, gate.s * gate.i * data.wide("x"), np.zeros_like(start))}


def _swapped(data: Inputs) -> Mapping[str, Array]:
    swapped = {**data.arrays, "gx": data.arrays["ga"], "ga": data.arrays["gx"]}
    gate = gates(Inputs(swapped, data.outputs, data.scalars))
    return {"h": states(gate.a, gate.s * gate.i * data.wide("x"), start_in(data))}


SPACE = space(cases(0), 4)
PROBLEM = several_types(
    KernelProblem(
        id="rglru_forward",
        file="rglru_kernel.cu",
        entry_point="launch_rglru_forward",
        parameters=(
            ArrayParameter("h", Role.OUTPUT, ANY_TYPE),
            ArrayParameter("x", Role.INPUT, ANY_TYPE),
            ArrayParameter("gx", Role.INPUT, ANY_TYPE),
            ArrayParameter("ga", Role.INPUT, ANY_TYPE),
            ArrayParameter("c", Role.INPUT),
            ArrayParameter("h0", Role.INPUT),
            ScalarParameter("batch", "int"),
            ScalarParameter("length", "int"),
            ScalarParameter("width", "int"),
            StreamParameter("stream"),
        ),
        groups=(*GROUPS, MAGNITUDES),
        cases=with_grid(cases, SPACE),
        timing_cases=timing_cases,
        inputs=inputs,
        oracle=oracle,
        minimal_bytes=minimal_bytes,
        slices=(Slices(("h",), lambda case: case.sizes["batch"], some_sequences),),
        turning=("x", "gx", "ga", "h0", "h"),
        space=SPACE,
        bugs={
            "h0 is left out": _without_start,
            "gx and ga are swapped": _swapped,
            "x is not multiplied by the input gate": _h(lambda g, x: (g.a, g.s * x)),
            "x is not multiplied by sqrt(1 - a^2)": _h(lambda g, x: (g.a, g.i * x)),
            "the root is missing: x is multiplied by 1 - a^2": _h(lambda g, x: (g.a, g.s**2 * g.i * x)),
            "x is multiplied by sqrt(1 - a)": _h(lambda g, x: (g.a, np.sqrt(1 - g.a) * g.i * x)),
            "x is multiplied by 1 - a": _h(lambda g, x: (g.a, (1 - g.a) * g.i * x)),
            "the exponential is missing: the factor is 1 - d": _h(lambda g, x: (1 - g.d, g.s * g.i * x)),
            "the factor 8 of the decay is missing": _decay(lambda r, c: r * np.logaddexp(0, c)),
            "softplus is missing: the decay is 8 r C": _decay(lambda r, c: EIGHT * r * c),
            "sigmoid(C) is taken for softplus(C)": _decay(lambda r, c: EIGHT * r * sigmoid(c)),
            "softplus(-C) is taken for softplus(C)": _decay(lambda r, c: EIGHT * r * np.logaddexp(0, -c)),
            "the recurrence gate is missing": _decay(
                lambda r, c: EIGHT * np.logaddexp(0, c) * np.ones_like(r)
            ),
        },
    ),
    TYPES,
)
