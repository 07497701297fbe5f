"""A kind of problem: all that grading does in another way for problems of one kind than for those of another.

Each kind is one object, which the module of its answers defines; ``kinds.py`` lists them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from grader.assignments.rules import ProblemPoints
    from grader.judge.correctness.exchange import Exchange
    from grader.problems.problem import Problem
    from grader.run.prepared import Conduct, Prepared


class Prepare(Protocol):
    """How a submission's answer to a problem is made ready.

    Raises:
        NotJudgedError: there is nothing that can be run.
    """

    def __call__(self, conduct: Conduct, entry: ProblemPoints, problem: Any, /) -> Prepared:  # noqa: ANN401 - of the kind
        """The answer, ready to be run."""


@dataclass(frozen=True)
class ProblemKind:
    """A kind of problem.

    Attributes:
        name: what people call it.
        problem: the class of its problems.
        prepare: makes ready what a submission has for a problem of it.
        exchange: calls its cases and judges what comes back.
        rank: problems of a lower one are begun before others, as they take longer.
    """

    name: str
    problem: type[Problem]
    prepare: Prepare
    exchange: Exchange
    rank: int = 1
