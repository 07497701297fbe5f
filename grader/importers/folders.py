"""Imports the problems of a folder into one assignment.

Layer: imports the library of problems.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from grader.importers import kernel_bench, leet_gpu
from grader.importers.gpu_mode import TASK, ImportFaultError, identifier, read
from grader.importers.written import finish, write

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from grader.importers.gpu_mode import Task
    from grader.importers.written import Written

__all__ = ["ImportFaultError", "Report", "imported"]


@dataclass(frozen=True)
class Report:
    """What became of the problems of a folder.

    Attributes:
        written: those that were imported.
        refused: why each of the others was not, by its folder.
    """

    written: Sequence[Written]
    refused: Mapping[Path, str]

    @property
    def lines(self) -> Iterator[str]:
        """A line or more on each problem."""
        for problem in self.written:
            yield from _about(problem)
        for folder, reason in self.refused.items():
            yield f"{folder}: not imported: {reason}"


def _about(problem: Written) -> Iterator[str]:
    task = problem.task
    if problem.tolerant:
        yield (
            f"{task.name}: judged by its {len(task.tests)} tests with fresh seeds, and by its tolerance, "
            f"rtol {task.rtol:g} and atol {task.atol:g}: {problem.tolerant}"
        )
    else:
        sizes = ", ".join(f"{name} {low} to {high}" for name, (low, high, *_) in task.ranges.items())
        yield f"{task.name}: bounds are derived from its reference, and cases have {sizes}"
    if problem.untimed:
        yield f"{task.name}: no points for speed: {problem.untimed}"
    elif task.ranking != "geom":
        yield f"{task.name}: ranks by {task.ranking} there; here it is the geometric mean of the speedups"


def imported(folder: Path, out: Path) -> Report:
    """Import a problem, or those in ``folder`` and in the folders within it, as an assignment in ``out``.

    Args:
        folder: of one problem or of many, or the file of a problem of the KernelBench form.
        out: a new folder.

    Raises:
        ImportFaultError: none can be imported, or ``out`` is there already.
        OSError: ``out`` cannot be written.
    """
    if out.exists():
        raise ImportFaultError(f"{out} is there already. Name a folder that is not.")
    forms = (TASK, leet_gpu.CHALLENGE)
    alone = kernel_bench.is_one(folder) or any((folder / form).is_file() for form in forms)
    inner = sorted(
        {
            *(path.parent for form in forms for path in folder.glob(f"*/{form}")),
            *filter(kernel_bench.is_one, folder.glob("*.py")),
        }
    )
    refused: dict[Path, str] = {}
    with TemporaryDirectory() as temporary:
        originals, draft = Path(temporary, "originals"), Path(temporary, "draft")
        originals.mkdir()
        written: list[Written] = []
        for path in [folder] if alone else inner:
            try:
                task = _read(path, originals)
                written.append(write(task, "submission.py" if alone else f"{task.name}.py", draft))
            except ImportFaultError as error:
                refused[path] = str(error)
        if not written:
            reasons = "".join(f"\n{path}: {reason}" for path, reason in refused.items())
            raise ImportFaultError(
                f"{folder} holds no problem that can be imported, with a file {' or '.join(forms)} in it "
                f"or in the folders within it, or a Python file with a class Model{reasons}"
            )
        finish(
            written, draft, out.resolve().name, folder.resolve().name.removesuffix(".py").replace("_", " ")
        )
        shutil.copytree(draft, out)
    return Report(written, refused)


def _read(path: Path, originals: Path) -> Task:
    """The problem at a path, whose files may be written in another form into ``originals``."""
    if path.is_file():
        return kernel_bench.read(path, originals / identifier(path.stem))
    if (path / TASK).is_file():
        return read(path)
    return leet_gpu.read(path, originals / identifier(path.resolve().name))
