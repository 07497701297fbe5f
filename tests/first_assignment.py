"""The assignment that most tests use, and what lies beside it in this repository."""

from pathlib import Path

from grader.assignments.assignment import load
from grader.assignments.mutants import table
from grader.devices.device import ModelProgram
from grader.problems.problem import KernelProblem

FOLDER = Path(__file__).parents[1] / "assignments" / "llm_systems_3"
VARIANTS = FOLDER / "variants"

ASSIGNMENT = load(str(FOLDER))
"""From the tree: the installed one has no mutants, no variants and no reference."""
PROBLEMS = ASSIGNMENT.problems
KERNELS = {name: problem for name, problem in PROBLEMS.items() if isinstance(problem, KernelProblem)}
"""Its kernel problems."""

MUTANTS = table(ASSIGNMENT)
"""Wrong kernels: each is the reference with one edit."""


def program(file: Path) -> ModelProgram:
    """``file`` as the answer to the problem of a PyTorch file, with what calls it in the runner."""
    problem = PROBLEMS["transformer"]
    given = tuple(ASSIGNMENT.template / name for name in problem.given)
    return ModelProgram(file, problem.harness, given)
