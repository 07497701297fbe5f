"""How many cases a problem has in each group, what they cost, and what they seem to lack.

Layer: imports problems, and with them PyTorch.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from grader.problems.problem import KernelProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grader.assignments.assignment import Assignment

FEWEST = 10
"""Fewer cases than that hardly tell a wrong kernel from a right one."""

_BORDERS = (32, 256, 1024)  # a warp, a usual block, the largest block
_SEED = 0


def of_all(assignment: Assignment) -> Iterator[str]:
    """A line for each kernel problem with its cases, and one for each doubt about them."""
    for name, problem in assignment.problems.items():
        if isinstance(problem, KernelProblem):
            yield from (f"{name}: {text}" for text in (counted(problem), *doubts(problem)))


def counted(problem: KernelProblem) -> str:
    """The number of cases, in all and in each group, and about how long the simulator takes for them."""
    cases = problem.cases(_SEED)
    groups = Counter(case.group for case in cases)
    listed = ", ".join(f"{group} {count}" for group, count in groups.items())
    if problem.seconds is None:
        return f"{len(cases)} cases: {listed}"
    seconds = sum(map(problem.seconds, cases))
    return f"{len(cases)} cases, about {seconds:.0f} s on the simulator: {listed}"


def doubts(problem: KernelProblem) -> Iterator[str]:
    """Why the cases may be too few: a sentence for each reason."""
    cases = problem.cases(_SEED)
    remedy = "let its sizes, most or seconds be larger"
    if len(cases) < FEWEST:
        yield f"only {len(cases)} cases: {remedy}, or add some in cases"
    if problem.space is None:
        return
    for size, limits in problem.space.ranges.items():
        largest = max((case.sizes.get(size, 0) for case in cases), default=0)
        beyond = [border for border in _BORDERS if largest <= border < limits.high]
        if beyond:
            yield f"no case has {size} above {beyond[0]}, and {limits.high} is allowed: {remedy}"
