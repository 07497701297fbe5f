"""The kinds of problems that there are; nothing else in this folder lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.run import kernel, model, module, program

if TYPE_CHECKING:
    from grader.problems.problem import Problem
    from grader.run.kind import ProblemKind

KINDS: tuple[ProblemKind, ...] = (module.KIND, kernel.KIND, model.KIND, program.KIND)
"""A module problem is a kernel problem with more to say, so it comes first."""


def kind_of(problem: Problem) -> ProblemKind:
    """The kind of a problem."""
    return next(kind for kind in KINDS if isinstance(problem, kind.problem))
