"""One module for each problem of assignment.toml, with the same name; it defines ``PROBLEM``.

Say here what is asked for, on which cases it is judged, what is right, and how far a right kernel may be off.

Here: z = a x + y. In float32 the product and the sum are each rounded once, or both at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.problems import bounds
from grader.problems.distributions import STREAMS, build_cases, generator, normal
from grader.problems.operations import Operation, dense, mapped, zipped
from grader.problems.problem import (
    ArrayParameter,
    Candidate,
    Case,
    Expectation,
    Inputs,
    KernelProblem,
    Role,
    ScalarParameter,
    StreamParameter,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

FACTOR = 1.7


def cases(seed: int) -> tuple[Case, ...]:
    """Sizes around those of a warp and a block, large numbers, and work that arrives through a stream."""
    table = [
        *(("sizes", {"n": n}, "normal") for n in (1, 31, 32, 33, 127, 128, 129, 1000, 4099)),
        ("values", {"n": 500}, "large"),
        (STREAMS, {"n": 3000}, "normal"),
    ]
    return build_cases(seed, table)


def timing_cases(seed: int) -> tuple[Case, ...]:
    """One size that a launch costs most of the time of, and one that is larger than the L2 cache."""
    return build_cases(seed, [("small", {"n": 1 << 16}, "normal"), ("large", {"n": 1 << 25}, "normal")])


def inputs(case: Case) -> Inputs:
    """What the launcher is given in a case: the same numbers for the same seed."""
    random, n = generator(case.seed), case.sizes["n"]
    scale = 1e30 if case.distribution == "large" else 1.0
    arrays = {name: normal(random, (n,), scale=scale) for name in ("x", "y")}
    return Inputs(arrays=arrays, outputs={"z": (n,)}, scalars={"a": FACTOR, "n": n})


def oracle(case: Case, given: Inputs) -> Mapping[str, Expectation]:  # noqa: ARG001 - the shape of a problem
    """What is right, in float64, and the largest error of a right kernel for each element."""
    precision = bounds.PRECISIONS["float32"]
    product = FACTOR * given.wide("x")
    exact = product + given.wide("y")
    error = 2 * precision.unit * abs(product)  # of the factor in float32, and of the product
    return {"z": Expectation((Candidate(exact, bounds.allowed(error, exact, precision)),))}


def unfused(case: Case) -> tuple[Operation, ...]:
    """The baseline that a speedup is measured against: one generic kernel for each operation."""
    n = case.sizes["n"]
    product = mapped("product", "multiply constant", dense("x", n), FACTOR)
    return product, zipped("z", "add", product.output, dense("y", n))


PROBLEM = KernelProblem(
    id="vector_add",
    file="vector_add.cu",
    entry_point="launch_vector_add",
    parameters=(
        ArrayParameter("z", Role.OUTPUT),
        ArrayParameter("x", Role.INPUT),
        ArrayParameter("y", Role.INPUT),
        ScalarParameter("a", "float"),
        ScalarParameter("n", "int"),
        StreamParameter("stream"),
    ),
    groups=("sizes", "values", STREAMS),
    cases=cases,
    timing_cases=timing_cases,
    inputs=inputs,
    oracle=oracle,
    minimal_bytes=lambda case: 12 * case.sizes["n"],
    unfused=unfused,
    bugs={"x is not multiplied by a": lambda given: {"z": given.wide("x") + given.wide("y")}},
)
