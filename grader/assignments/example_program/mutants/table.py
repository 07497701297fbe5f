"""Wrong programs, each the reference with one edit: they must fail, or a case is missing."""

from grader.assignments.mutants import Mutant
from grader.problems.problem import MEMORY_GROUP

MUTANTS = (
    Mutant(
        id="last-element",
        problem="vector_add",
        file="vector_add.cu",
        old="if (i < n)",
        new="if (i < n - 1)",
        why="the last element is left out",
        group="small",
    ),
    Mutant(
        id="no-bound",
        problem="vector_add",
        file="vector_add.cu",
        old="if (i < n) c",
        new="c",
        why="threads behind the end write outside of the array",
        group=MEMORY_GROUP,
    ),
    Mutant(
        id="one-block",
        problem="vector_add",
        file="vector_add.cu",
        old="(n + 255) / 256",
        new="1",
        why="only one block is launched",
        group="large",
    ),
)
