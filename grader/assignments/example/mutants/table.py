"""Wrong kernels, each the reference with one edit: they must fail in their problem, or a case is missing.

Write down the bugs that you expect of students; `grader assignment mutate` finds others by itself.
"""

from grader.assignments.mutants import Mutant

MUTANTS = (
    Mutant(
        id="last-element",
        problem="vector_add",
        file="vector_add.cu",
        old="if (i < n)",
        new="if (i < n - 1)",
        why="the last element is left out",
        group="small sizes",
    ),
    Mutant(
        id="no-factor",
        problem="vector_add",
        file="vector_add.cu",
        old="a * x[i]",
        new="x[i]",
        why="x is not multiplied",
        group="small sizes",
    ),
    Mutant(
        id="one-block",
        problem="vector_add",
        file="vector_add.cu",
        old="(n + THREADS - 1) / THREADS",
        new="1",
        why="only one block is launched",
        group="large sizes",
    ),
    Mutant(
        id="default-stream",
        problem="vector_add",
        file="vector_add.cu",
        old="0, stream",
        new="0, nullptr",
        why="the kernel runs on the default stream",
        group="streams",
    ),
)
