"""The kernel problems of all assignments, and which inputs each has."""

from pathlib import Path

from grader.assignments.assignment import available, load
from grader.problems.problem import KernelProblem, Space

ASSIGNMENTS = Path(__file__).parents[2] / "assignments"
PROBLEMS = {
    f"{name}/{problem_id}": problem
    for name in available()
    for problem_id, problem in load(str(ASSIGNMENTS / name)).problems.items()
    if isinstance(problem, KernelProblem) and name != "handout"  # which has the problems of another one
}


def space_of(problem: KernelProblem) -> Space:
    assert problem.space is not None
    return problem.space
