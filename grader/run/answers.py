"""Which language each problem of a submission is answered in: the files that are there decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.problems.problem import KernelProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    entry: ProblemPoints, problem: Problem, submission: Submission, languages: Sequence[Language]
) -> Answered:
    """``problem`` in the last of the ``languages`` in which a file of the submission answers it.

    If none does, then in the first of which there is a file at all, or else in the first. The launchers that
    a model calls are in the first, too.
    """
    first = languages[0]
    if not isinstance(problem, KernelProblem):
        return Answered(entry, problem, first)
    ways = [(language, language.asked(problem)) for language in languages]
    there = [(language, asked) for language, asked in ways if asked.file in submission.files]
    fitting = [
        (language, asked)
        for language, asked in there
        if language.answers(asked, submission.contents(asked.file))
    ]
    if not fitting:
        language, asked = next(iter(there), ways[0])
        return Answered(entry, asked, language)
    *others, (language, asked) = fitting
    left = " and ".join(other.file for _, other in others)
    return Answered(entry, asked, language, f"{asked.file} was graded, not {left}" if left else "")
