"""A submission's answer to a module problem: its Python file, opened, compared and timed as a launcher is."""

from __future__ import annotations

from grader.judge.correctness.arrays import ARRAYS
from grader.problems.module import ModuleProblem
from grader.run import kernel
from grader.run.kind import ProblemKind

KIND = ProblemKind("module problem", ModuleProblem, kernel.prepare, ARRAYS)
