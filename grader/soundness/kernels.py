"""The right kernels of an assignment: its reference and its variants, one for each problem that they solve.

A right program is one as well, with the function ``main`` as its launcher.

    reference/                      solves every problem
    variants/PROBLEM/NAME.cu        a whole answer to one kernel problem, written differently

Layer: imports problems, assignments, submissions and languages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from grader.assignments.mutants import VARIANTS
from grader.assignments.rules import AssignmentError
from grader.languages.cuda.compile import reachable
from grader.languages.cuda.source import functions, without
from grader.problems.problem import KernelProblem
from grader.problems.program import ProgramProblem
from grader.run.program import in_folder
from grader.submissions.submission import collect

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from grader.assignments.assignment import Assignment


@dataclass(frozen=True)
class RightKernel:
    """A launcher, or a program, that must pass.

    Attributes:
        name: where it lies, such as ``reference`` or ``variants/PROBLEM/NAME.cu``.
        problem: that it solves.
        files: what it is built from, by path from the problem's file.
    """

    name: str
    problem: KernelProblem | ProgramProblem
    files: Mapping[str, str]

    @property
    def id(self) -> str:
        """Its name and problem."""
        return f"{self.name} as {self.problem.id}"

    def label(self, file: str) -> str:
        """How a person finds one of its files."""
        return f"{self.name}/{file}" if self.name == "reference" else self.name

    @cached_property
    def used(self) -> frozenset[str]:
        """The words in the launcher and in all that it can come to call, as far as names tell.

        What stands outside of functions may all be called: constructors and methods, macros, constants.
        """
        definitions = [function for text in self.files.values() for function in functions(text)]
        if not {*self.problem.entry_points} <= {
            function.name for function in definitions
        }:  # a macro writes them
            return frozenset(word for text in self.files.values() for word in re.findall(r"\w+", text))
        words = {*self.problem.entry_points}.union(*map(_outside_of_functions, self.files.values()))
        pending = [*words]
        while pending:
            called = pending.pop()
            for function in (definition for definition in definitions if definition.name == called):
                pending += function.words - words
                words |= function.words
        return frozenset(words)

    def alone(self, problems: Iterable[str]) -> Mapping[str, str]:
        """Its files without the launchers of ``problems``, so that their kernels cost no compile time."""
        text = self.files[self.problem.file]
        gone = {*problems} - {*self.problem.entry_points}
        return {
            **self.files,
            self.problem.file: without(
                text, [function for function in functions(text) if function.name in gone]
            ),
        }


def _outside_of_functions(text: str) -> list[str]:
    """The words of a file that are in no function and no comment."""
    return re.findall(r"\w+", re.sub(r"//.*|/\*[\s\S]*?\*/", "", without(text, functions(text))))


def kernel_problems(assignment: Assignment, only: Collection[str] | None = None) -> dict[str, KernelProblem]:
    """The problems of launchers that the assignment grades, in its order; of ``only``, unless it is None."""
    problems = assignment.problems
    graded = [entry.id for entry in assignment.rules.problems if entry.graded and entry.id in problems]
    chosen = [name for name in graded if only is None or name in only]
    return {name: problem for name in chosen if isinstance(problem := problems[name], KernelProblem)}


def entry_points(assignment: Assignment) -> frozenset[str]:
    """The names of all launchers that the assignment asks for."""
    problems = kernel_problems(assignment).values()
    return frozenset(name for problem in problems for name in problem.entry_points)


def right_kernels(assignment: Assignment, only: Collection[str] | None = None) -> tuple[RightKernel, ...]:
    """The reference, as an answer to each kernel problem, and the variants.

    Args:
        assignment: that they belong to.
        only: the problems that they are to solve, by id; None for all.

    Raises:
        AssignmentError: the reference lacks a file, or a variant is filed under no problem.
    """
    problems = kernel_problems(assignment)
    chosen = kernel_problems(assignment, only)
    kernels = []
    with collect(assignment.reference, {problem.file for problem in chosen.values()}) as reference:
        for problem in chosen.values():
            if problem.file not in reference.files:
                raise AssignmentError(
                    f"{assignment.reference} has no {problem.file}, which {problem.id} needs."
                )
            needed = reachable(problem.file, reference.contents(problem.file))
            texts = {name: content.decode(errors="replace") for name, content in needed.items()}
            kernels.append(RightKernel("reference", problem, texts))
    folder = assignment.folder / VARIANTS
    for path in sorted(folder.glob("*/*.cu")):
        name = path.parent.name
        if isinstance(assignment.problems.get(name), ProgramProblem):
            continue
        if name not in {*problems, *assignment.absent}:
            raise AssignmentError(
                f"{path} lies in no folder of a kernel problem. Valid: {', '.join(problems)}."
            )
        if name in chosen:
            text = path.read_text(encoding="utf-8", errors="replace")
            label = path.relative_to(assignment.folder).as_posix()
            kernels.append(RightKernel(label, chosen[name], {chosen[name].file: text}))
    return tuple(kernels)


def right_programs(assignment: Assignment) -> tuple[RightKernel, ...]:
    """The reference, as an answer to each program problem that is graded.

    Raises:
        AssignmentError: the reference lacks a file.
    """
    problems = assignment.problems
    graded = [
        problems[entry.id] for entry in assignment.rules.problems if entry.graded and entry.id in problems
    ]
    programs = [problem for problem in graded if isinstance(problem, ProgramProblem)]
    with collect(assignment.reference, {file for problem in programs for file in problem.files}) as reference:
        programs_of_reference = []
        for problem in programs:
            files: dict[str, str] = {}
            for file in (*problem.sources, *problem.matching(reference.matched)):
                if file not in reference.files:
                    raise AssignmentError(f"{assignment.reference} has no {file}, which {problem.id} needs.")
                needed = in_folder(problem.folders.get(file, ""), reachable(file, reference.contents(file)))
                files |= {name: content.decode(errors="replace") for name, content in needed.items()}
            programs_of_reference.append(RightKernel("reference", problem, files))
    return tuple(programs_of_reference)
