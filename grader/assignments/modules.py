"""Imports the problem modules of an assignment's folders, each folder as a package of its own.

Modules of one folder may import each other relatively, and the grader's library of problems by its name. Two
assignments may have modules of the same name.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from grader.assignments.rules import AssignmentError
from grader.problems.explained import FormulaError
from grader.problems.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


PREFIX = "assignment_"
"""What the names of the packages begin with that modules of assignments are imported as."""


def load_problems(
    folders: Sequence[Path], ids: Sequence[str], needed: Collection[str] | None = None
) -> Mapping[str, Problem]:
    """The problems that modules of these names define; names without a module are left out.

    So are those whose module fails, unless they are ``needed``, which all are without that.

    Raises:
        AssignmentError: modules cannot be imported, or their ``PROBLEM`` is none or has another id; the
            message has a line for each.
    """
    problems, faults = {}, []
    for problem_id in ids:
        folder = next((folder for folder in folders if (folder / f"{problem_id}.py").is_file()), None)
        if folder is None:
            continue
        try:
            problem = getattr(load_module(folder, problem_id), "PROBLEM", None)
        except AssignmentError as error:
            faults += [str(error)] if needed is None or problem_id in needed else []
            continue
        if not isinstance(problem, Problem) or problem.id != problem_id:
            path = folder / f"{problem_id}.py"
            faults.append(f"{path}: PROBLEM must be a Problem with the id {problem_id!r}")
        else:
            problems[problem_id] = problem
    if faults:
        raise AssignmentError("\n".join(faults))
    return problems


def defined(folders: Sequence[Path]) -> list[str]:
    """The names of the modules that seem to define a problem, without running them."""
    paths = (path for folder in folders for path in sorted(folder.glob("*.py")))
    return [path.stem for path in paths if "\nPROBLEM" in path.read_text(encoding="utf-8", errors="replace")]


def load_module(folder: Path, name: str) -> ModuleType:
    """The module ``name`` of a folder.

    Raises:
        AssignmentError: it cannot be imported; the message names the line.
    """
    package = f"{PREFIX}{hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]}"
    if package not in sys.modules:
        module = ModuleType(package, f"The modules in {folder}.")
        module.__path__ = [str(folder)]
        sys.modules[package] = module
    try:
        return importlib.import_module(f"{package}.{name}")
    except Exception as error:  # a teacher's code may raise anything
        raise AssignmentError(located(error, [folder], folder / f"{name}.py")) from error


def located(error: BaseException, folders: Sequence[Path], path: Path) -> str:
    """An error of a teacher's code in one line, after the innermost line in ``folders`` that led to it.

    Without such a line, it stands after ``path``.
    """
    line = str(path)
    for raised in (error, error.__cause__):
        for frame in traceback.extract_tb(raised.__traceback__) if raised else ():
            if any(_within(frame.filename, folder) for folder in folders):
                line = f"{frame.filename}:{frame.lineno}"
    text = str(error).partition("\n")[0]
    kind = "" if isinstance(error, FormulaError) else f"{type(error).__name__}: "
    return f"{line}: {kind}{text}"


def _within(file: str, folder: Path) -> bool:
    return Path(file).is_relative_to(folder)
