"""A first-order linear recurrence along time: h_t = a_t h_{t-1} + b_t, from a given or zero state.

The bound is that of ``shapes``, with a and b as they are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grader.problems import bounds
from grader.problems.distributions import generator, normal
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
    GONE,
    GROUPS,
    SLOW,
    TYPES,
    VALUES,
    element_bytes,
    graded,
    scan,
    shape_of,
    some_sequences,
    space,
    start_in,
    start_of,
    states,
    stored,
    timing_cases,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SIGNS, RESETS, TINY = "factors of both signs", "factors of zero", "factors that vanish"


def cases(seed: int) -> tuple[Case, ...]:
    """Fixed shapes with fresh content, and sizes drawn from the seed."""
    table = (
        (VALUES, "float32", 2, 300, 8, SIGNS),
        (VALUES, "float32", 2, 300, 8, RESETS),
        (VALUES, "float32", 2, 300, 8, TINY),
    )
    return graded(seed, table)


def inputs(case: Case) -> Inputs:
    """Factors a and terms b [batch, length, width], states h0 [batch, width] or none."""
    random = generator(case.seed)
    shape = shape_of(case)
    a = random.random(shape, dtype=np.float32)
    if case.distribution == SLOW:
        a = 1 - a / 256
    elif case.distribution == GONE:
        a = 1 - a / 65_536
    elif case.distribution == SIGNS:
        a = 2 * a - 1
    elif case.distribution == RESETS:
        a[random.random(shape) < 0.1] = 0
    elif case.distribution == TINY:
        a = a * np.float32(1e-20)
    return Inputs(
        arrays={"a": stored(a, case), "b": stored(normal(random, shape), case), "h0": start_of(random, case)},
        outputs={"h": shape},
        scalars=dict(zip(("batch", "length", "width"), shape, strict=True)),
    )


def oracle(case: Case, data: Inputs) -> Mapping[str, Expectation]:
    """The states in float64."""
    exact = scan(data.wide("a"), data.wide("b"), start_in(data))
    allowed = bounds.allowed(exact.error, exact.value, bounds.PRECISIONS[case.dtype])
    return {"h": Expectation((Candidate(exact.value, allowed),))}


def minimal_bytes(case: Case) -> int:
    """A, b and the first states read; h written."""
    batch, length, width = shape_of(case)
    return 3 * element_bytes(case) * batch * length * width + 4 * batch * width


def _h(formula: Callable[[Array, Array, Array], Array]) -> Callable[[Inputs], Mapping[str, Array]]:
    """Wrong states from a, b and h0."""
    return lambda data: {"h": formula(data.wide("a"), data.wide("b"), start_in(data))}


def _later(a: Array) -> Array:
    """A of the step before, 1 at the first."""
    return np.concatenate((np.ones_like(a[:, :1]), a[:, :-1]), axis=1)


SPACE = space(cases(0), 3)
PROBLEM = several_types(
    KernelProblem(
        id="linear_scan",
        file="rglru_kernel.cu",
        entry_point="launch_linear_scan",
        parameters=(
            ArrayParameter("h", Role.OUTPUT, ANY_TYPE),
            ArrayParameter("a", Role.INPUT, ANY_TYPE),
            ArrayParameter("b", Role.INPUT, ANY_TYPE),
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
        turning=("a", "b", "h0", "h"),
        space=SPACE,
        bugs={
            "h0 of the first sequence is taken for all": _h(lambda a, b, h0: states(a, b, h0 * 0 + h0[:1])),
            "h0 is left out": _h(lambda a, b, h0: states(a, b, np.zeros_like(h0))),
            "h0 is taken for the first state": _h(
                lambda a, b, h0: np.concatenate((h0[:, None], states(a[:, 1:], b[:, 1:], h0)), axis=1)
            ),
            "h0 is added to the first state without its factor": _h(
                lambda a, b, h0: states(np.concatenate((np.ones_like(a[:, :1]), a[:, 1:]), axis=1), b, h0)
            ),
            "the factor is that of the step before": _h(lambda a, b, h0: states(_later(a), b, h0)),
            "there is no factor: b is only summed": _h(lambda a, b, h0: states(np.ones_like(a), b, h0)),
            "the state is not carried on": _h(lambda _a, b, _h0: b),
            "b is multiplied by a as well": _h(lambda a, b, h0: states(a, a * b, h0)),
            "the sequence is scanned from its end": _h(
                lambda a, b, h0: states(a[:, ::-1], b[:, ::-1], h0)[:, ::-1]
            ),
        },
    ),
    TYPES,
)
