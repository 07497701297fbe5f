"""The problems: every module of this package that defines ``PROBLEM`` is one."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from grader.problems.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping


def load_all() -> Mapping[str, Problem]:
    """Every problem of this package by its id.

    Raises:
        TypeError: a module's ``PROBLEM`` is not a problem, or its id is not the module's name.
    """
    problems = {}
    for module_info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        problem = getattr(module, "PROBLEM", None)
        if problem is None:
            continue
        if not isinstance(problem, Problem) or problem.id != module_info.name:
            raise TypeError(f"{module.__name__}.PROBLEM must be a Problem with the id {module_info.name!r}")
        problems[problem.id] = problem
    return problems
