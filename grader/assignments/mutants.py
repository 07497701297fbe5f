"""Wrong kernels of an assignment: each is its reference, or a variant, with one small edit and one reason.

``mutants/table.py`` in the assignment's folder defines ``MUTANTS`` of kernels in CUDA; those of another
language are in a file of its name, such as ``mutants/triton.py``. Like its problems, they are trusted code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.assignments.modules import load_module
from grader.assignments.rules import AssignmentError
from grader.problems.problem import MEMORY_GROUP

if TYPE_CHECKING:
    from grader.assignments.assignment import Assignment

FOLDER, VARIANTS = "mutants", "variants"
_TABLES = {"cuda": "table"}
"""The modules whose name is not that of the language."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One edit of one file.

    Attributes:
        id: its name.
        problem: that must fail.
        file: of a submission.
        old: occurs there exactly once.
        new: what replaces it.
        why: what is wrong with it, for people.
        group: a case group of the problem that must fail.
        theme: what kind of mistake it is.
        diagnosis: a piece of what the judge should say; "" where no rule is expected to know.
        also: what else the edit needs elsewhere in the file: old and new text.
        headers: that the edit needs.
        variant: the variant that is edited, as ``PROBLEM/NAME.cu``; "" where it is the file of the reference.
        language: that the file is in.
    """

    id: str
    problem: str
    file: str
    old: str
    new: str
    why: str
    group: str
    theme: str = ""
    diagnosis: str = ""
    also: tuple[tuple[str, str], ...] = ()
    headers: tuple[str, ...] = ()
    variant: str = ""
    language: str = "cuda"

    @property
    def numbers(self) -> bool:
        """Whether outputs must come out wrong; else a finding of a checker is enough."""
        return self.group != MEMORY_GROUP

    def original(self, assignment: Assignment) -> str:
        """The file before the edit."""
        variants = assignment.folder / VARIANTS
        path = variants / self.variant if self.variant else assignment.reference_in(self.language) / self.file
        return path.read_text(encoding="utf-8")

    def text(self, assignment: Assignment) -> str:
        """The edited file.

        Raises:
            ValueError: what is to be replaced does not occur exactly once.
        """
        return self.applied(self.original(assignment))

    def applied(self, text: str) -> str:
        """The edited text of its file.

        Raises:
            ValueError: what is to be replaced does not occur exactly once.
        """
        for old, new in ((self.old, self.new), *self.also):
            if text.count(old) != 1:
                raise ValueError(
                    f"{self.id}: {old!r} occurs {text.count(old)} times in {self.variant or self.file}"
                )
            text = text.replace(old, new)
        return "".join(f"#include <{header}>\n" for header in self.headers) + text


def table(assignment: Assignment, language: str = "cuda") -> tuple[Mutant, ...]:
    """The mutants of an assignment in a language; none where it has no table of them.

    Raises:
        AssignmentError: the table cannot be imported, or holds something else.
    """
    folder, module = assignment.folder / FOLDER, _TABLES.get(language, language)
    path = folder / f"{module}.py"
    if not path.is_file():
        return ()
    mutants = getattr(load_module(folder, module), "MUTANTS", None)
    if not isinstance(mutants, tuple) or not all(isinstance(mutant, Mutant) for mutant in mutants):
        raise AssignmentError(f"{path}: MUTANTS must be a tuple of Mutant.")
    return mutants
