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
    given = tuple(ASSIGNMENT.template / name for name in problem.modules)
    return ModelProgram(file, problem.harness, given)


RULES = """
id = "few_rows"
title = "The four kernels without many rows"
extends = "llm_systems_3"
"""
MOST_ROWS = {
    "softmax_forward": "batch_size = 1000, from_len = 200",
    "softmax_backward": "rows = 1000",
    "layernorm_forward": "batch_size = 1000",
    "layernorm_backward": "batch_size = 1000",
}
LONGEST_ROWS = {
    "softmax_forward": "to_len = 130",
    "softmax_backward": "softmax_len = 130",
    "layernorm_forward": "hidden_dim = 132",
    "layernorm_backward": "hidden_dim = 132",
}


def few_rows(folder: Path, *, short: bool = False) -> Path:
    """An assignment in ``folder`` that waives the cases with many rows, which take most of a grading.

    For tests of what happens around gradings, in processes of their own. ``short``: also long rows.
    """
    problems = "".join(f'[[problems]]\nid = "{name}"\n' for name in MOST_ROWS)
    waivers = "".join(
        f'[[waivers]]\nproblem = "{name}"\nabove = {{ {sizes} }}\nreason = "many"\n'
        for most in (MOST_ROWS, *([LONGEST_ROWS] if short else []))
        for name, sizes in most.items()
    )
    folder.mkdir()
    (folder / "assignment.toml").write_text(RULES + problems + waivers)
    return folder
