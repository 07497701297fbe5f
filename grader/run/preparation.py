"""From the builds of a submission's files to artefacts that can be opened, or the reason why none can."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from grader.records.record import BuildResult, KernelResources
from grader.records.verdict import Verdict
from grader.run.once import Once

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from grader.assignments.assignment import Assignment
    from grader.devices.device import Answer, Memory
    from grader.languages.language import Build, EntryPoint, FileBuild, Language
    from grader.problems.problem import Case, Problem
    from grader.records.record import CaseResult
    from grader.run.bench import Bench, Machine
    from grader.submissions.submission import Submission

    Observe = Callable[[Problem, Memory, Case, CaseResult, Answer], None]


class Outcome(IntEnum):
    """What calling a launcher with one kind of pointers showed, the best first."""

    RIGHT = 0
    WRONG = 1
    ENDED = 2  # by a crash, an exit, an error of CUDA's or a limit
    MISTAKEN = 3  # it took the pointers for those of the other kind, whatever came of it


@dataclass(frozen=True)
class Material:
    """What a problem of one submission is judged on.

    Attributes:
        assignment: its points, limits, waivers and problems.
        seed: of the inputs.
        memory: the option of ``grade``.
        submission: its files.
        language: that the problem is answered in.
        note: what of the submission was not graded for it; empty if there is no such thing.
        builds: of the files.
        reference_code: bytes of machine code of the reference's files, where the assignment asks for them.
        machine: what judges.
        bench: what other gradings know.
        progress: told what comes next.
        fast: whether to end a problem at the first pass of cases that shows something wrong.
        failed: the names of cases to begin with then, by problem.
        cases: the names of those that are run alone; all of them if it is empty.
        precise: whether speeds are measured for comparison with others, and not only until verdict and
            points are clear.
        observe: is shown each call of a case, with the problem and the kind of the launcher's pointers.
        trials: what came of calling launchers with each kind of pointers.
    """

    assignment: Assignment
    seed: int
    memory: str
    submission: Submission
    language: Language
    note: str
    builds: Mapping[str, FileBuild]
    reference_code: Mapping[str, int]
    machine: Machine
    bench: Bench
    progress: Callable[[str], None]
    fast: bool
    failed: Mapping[str, Collection[str]]
    cases: Collection[str] = ()
    precise: bool = False
    observe: Observe | None = None
    trials: Once[Mapping[Memory, Outcome]] = field(default_factory=Once)


class NotJudgedError(Exception):
    """No case of a problem can run; the text says why."""

    def __init__(
        self,
        message: str,
        build: BuildResult | None = None,
        verdict: Verdict = Verdict.FAIL,
        reasons: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.build = build
        self.verdict = verdict
        self.reasons = reasons


def forbidden_use(
    file: str, reasons: tuple[str, ...], build: BuildResult | None = None, *, mistaken: bool
) -> NotJudgedError:
    """Why a problem is not judged whose file uses what it may not use; no distrust of a mistake."""
    if mistaken:
        return NotJudgedError("; ".join(reasons), build)
    return NotJudgedError(f"{file} uses what a submission may not use", build, Verdict.UNTRUSTED, reasons)


def check_files(material: Material, problem: Problem) -> None:
    """Check that every file of the problem was handed in.

    Raises:
        NotJudgedError: one was not; the message says what was found instead.
    """
    submission = material.submission
    for file in dict.fromkeys((problem.file, *problem.sources)):
        if file not in submission.files:
            raise NotJudgedError(submission.problems.get(file, f"{file} is missing."))


def build_result(build: Build) -> BuildResult:
    """How the record tells a build."""
    return BuildResult(
        ok=build.ok,
        seconds=build.seconds,
        cached=build.cached,
        command=build.command,
        log=build.log,
        ending=build.ending,
        resources=[KernelResources(**vars(kernel)) for kernel in build.resources],
    )


def inspected(
    material: Material, file: str, build: Build, entry_points: Collection[str], others: Collection[str]
) -> tuple[Path, tuple[EntryPoint, ...], BuildResult]:
    """The artefact of ``build``, which is that of ``file`` or of a part of it, and what it has.

    Args:
        material: of the submission.
        file: its name.
        build: what became of it.
        entry_points: what to look for in the artefact.
        others: further entry points that the file has.

    Returns:
        The artefact, the entry points in their order, and how it was built.

    Raises:
        NotJudgedError: it did not compile, or uses what a submission may not use.
    """
    result = build_result(build)
    language, contents = material.language, material.submission.contents(file)
    if build.artefact is None:
        files = material.builds[file]
        remedied = result.model_copy(update={"remedy": language.remedy(files, contents)})
        raise NotJudgedError(language.explain(files, contents), remedied)
    allowed = material.assignment.rules.allowed_imports
    found = language.inspect(build.artefact, file, contents, entry_points, others, allowed)
    if found.forbidden:
        raise forbidden_use(file, found.forbidden, result, mistaken=found.mistaken)
    return build.artefact, found.entry_points, result
