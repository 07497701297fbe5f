"""Whether a program problem is sound: its variants pass, its mutants fail, its content is drawn anew.

    variants/PROBLEM/NAME.cu    a right program, written differently, in place of the problem's file
    mutants/table.py            edits of the reference's files

Each is graded as a submission is: the reference with one file replaced.

Layer: imports problems and assignments.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from grader.assignments.mutants import VARIANTS, table
from grader.assignments.rules import AssignmentError
from grader.problems.program import FIXED, ProgramProblem
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grader.assignments.assignment import Assignment
    from grader.records.record import ProblemResult

    Graded = Callable[[Path], ProblemResult]


def program_rows(
    assignment: Assignment, name: str, graded: Graded, reason: Callable[[ProblemResult], str]
) -> Iterator[tuple[str, bool | None, str]]:
    """Title, soundness and text of each check of a problem; none if it is no program problem.

    Args:
        assignment: that it belongs to.
        name: its id.
        graded: the result of a submission for it.
        reason: why a result lost points, in one line.
    """
    problem = assignment.problems[name]
    if not isinstance(problem, ProgramProblem):
        return
    yield (f"content of {name}", *_content(problem))
    yield (f"variants of {name}", *_variants(assignment, problem, graded, reason))
    yield (f"mutants of {name}", *_mutants(assignment, problem, graded))


def _content(problem: ProgramProblem) -> tuple[bool | None, str]:
    cases = problem.cases(0)
    fixed = sum(case.distribution == FIXED for case in cases)
    if fixed < len(cases):
        return True, f"{len(cases) - fixed} of {len(cases)} cases are drawn anew each time"
    return None, (
        f"all {fixed} cases are the same each time: a program that knows them can print what is expected. A "
        "function that draws its content prevents that (docs/programs.md)"
    )


def _variants(
    assignment: Assignment, problem: ProgramProblem, graded: Graded, reason: Callable[[ProblemResult], str]
) -> tuple[bool | None, str]:
    paths = sorted((assignment.folder / VARIANTS / problem.id).glob("*"))
    lost = []
    for path in paths:
        with _changed(assignment.reference, problem.file, path.read_text(encoding="utf-8")) as folder:
            result = graded(folder)
        if result.correctness.verdict is not Verdict.PASS:
            lost.append(f"{path.name} fails: {reason(result)}")
    return (not lost if paths else None), "; ".join(lost) or (
        f"{len(paths)} pass" if paths else "there are none"
    )


def _mutants(assignment: Assignment, problem: ProgramProblem, graded: Graded) -> tuple[bool | None, str]:
    try:
        edited = {
            mutant: mutant.text(assignment) for mutant in table(assignment) if mutant.problem == problem.id
        }
    except (AssignmentError, ValueError, OSError) as error:
        return False, str(error)
    passing = []
    for mutant, text in edited.items():
        with _changed(assignment.reference, mutant.file, text) as folder:
            result = graded(folder)
        if result.build is not None and not result.build.ok:
            passing.append(f"{mutant.id} does not compile")
        elif result.correctness.verdict is not Verdict.FAIL:
            passing.append(f"{mutant.id} passes: no case finds that {mutant.why}")
    return (not passing if edited else None), "; ".join(passing) or (
        f"{len(edited)} fail" if edited else "there are none"
    )


@contextmanager
def _changed(reference: Path, file: str, text: str) -> Iterator[Path]:
    """The reference with another text of one file, for as long as it is needed."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(reference, folder, dirs_exist_ok=True)
        (Path(folder) / file).write_text(text, encoding="utf-8")
        yield Path(folder)
