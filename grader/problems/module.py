"""A module problem: a function on tensors in a Python file, which returns tensors or fills those given.

``formula_module.py`` makes one from a formula.

Layer: imports the library of problems.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from grader.problems.problem import KernelProblem, Role

Operators = Literal["none", "views", "all"]
"""Which operators of PyTorch a function may use: none, those that give views of a tensor, or all."""


@dataclass(frozen=True)
class Tolerance:
    """A difference that the judge allows because the project that a problem comes from allows it.

    Attributes:
        rtol: share of the expected element.
        atol: what is allowed in addition.
        why: why no bound was derived, in one sentence.
    """

    rtol: float
    atol: float
    why: str


@dataclass(frozen=True, kw_only=True)
class ModuleProblem(KernelProblem):
    """A function on tensors; its entry point is the name of the function.

    Attributes:
        made: outputs that the function is not given: it makes tensors of their shapes, and returns them.
        packed: whether it takes one tuple of all its arguments.
        initial: how many of the first arguments an object of a class is made with, whose ``forward`` gets the
            others; None where the entry point is a function.
        weights: the names of the object's weights that the next arguments are, such as ``linear.bias``: they
            are set before ``forward`` is called, which does not get them.
        torch_operators: which operators of PyTorch it may use.
        tolerance: the allowed error, where it is that of an original instead of one that was derived.
    """

    made: tuple[str, ...] = ()
    packed: bool = False
    initial: int | None = None
    weights: tuple[str, ...] = ()
    torch_operators: Operators = "views"
    tolerance: Tolerance | None = None

    @property
    def passed(self) -> tuple[str, ...]:
        """The names of the arguments that the function is given, in order."""
        return tuple(parameter.name for parameter in self.parameters if parameter.name not in self.made)

    @property
    def forwarded(self) -> tuple[str, ...]:
        """The names of the arguments of an object's ``forward``."""
        return self.passed[(self.initial or 0) + len(self.weights) :]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the tensors that it may return, in order."""
        return tuple(array.name for array in self.arrays if array.role is not Role.INPUT)
