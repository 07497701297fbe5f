"""Which language each problem of a submission is answered in: the files that are there decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.languages.language import Stage
from grader.problems.problem import KernelProblem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from grader.assignments.assignment import Assignment
    from grader.assignments.rules import ProblemPoints
    from grader.languages.language import Language
    from grader.problems.problem import Problem
    from grader.submissions.submission import Submission


@dataclass(frozen=True)
class Answered:
    """A problem as a submission answers it.

    Attributes:
        entry: its points.
        problem: with the file and the entry points that its language asks for.
        language: that it is written in.
        note: what else could have been graded; empty if nothing could.
    """

    entry: ProblemPoints
    problem: Problem
    language: Language
    note: str = ""


def answered(
    entry: ProblemPoints,
    problem: Problem,
    submission: Submission,
    languages: Sequence[Language],
    assignment: Assignment,
) -> Answered:
    """``problem`` in that of the ``languages`` whose file has come furthest, the last of these.

    Without any file it is the first language, and so it is for the launchers that a model calls.
    """
    if not isinstance(problem, KernelProblem):
        return Answered(entry, problem, languages[0])
    ways = [(language, language.translated(problem)) for language in languages]
    stages = {
        language.name: _stage(language, translated, submission, assignment.template_in(language.name))
        for language, translated in ways
        if translated.file in submission.files
    }
    furthest = max(stages.values(), default=Stage.GIVEN)
    alike = [(language, translated) for language, translated in ways if stages.get(language.name) is furthest]
    language, asked = (alike or ways[:1])[-1]
    ignored = " and ".join(other.file for _, other in alike[:-1]) if furthest is Stage.BEGUN else ""
    note = (
        f"{asked.file} was graded, not {ignored}: remove {asked.file} if {ignored} is to count"
        if ignored
        else ""
    )
    return Answered(entry, asked, language, note)


def _stage(language: Language, problem: KernelProblem, submission: Submission, template: Path) -> Stage:
    contents, template_file = submission.contents(problem.file), template / problem.file
    stage = language.stage(problem, contents)
    unchanged = (
        template_file.is_file() and template_file.read_bytes().split() == contents[problem.file].split()
    )
    return min(stage, Stage.GIVEN) if unchanged else stage
