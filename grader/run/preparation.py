"""From the builds of a submission's files to libraries that can be loaded, or the reason why none can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.languages.cuda.headers import missing as missing_header
from grader.languages.cuda.imports import violations
from grader.records.record import BuildResult, KernelResources
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from grader.assignments.assignment import Assignment
    from grader.languages.cuda.compile import Build
    from grader.languages.cuda.partial import FileBuild
    from grader.problems.problem import Problem
    from grader.run.bench import Bench, Machine
    from grader.submissions.submission import Submission


@dataclass(frozen=True)
class Material:
    """What the problems of one submission are judged on.

    Attributes:
        assignment: its points, limits, waivers and problems.
        seed: of the inputs.
        memory: the option of ``grade``.
        submission: its files.
        builds: of those files.
        machine: what judges.
        bench: what other gradings know.
        progress: told what comes next.
    """

    assignment: Assignment
    seed: int
    memory: str
    submission: Submission
    builds: Mapping[str, FileBuild]
    machine: Machine
    bench: Bench
    progress: Callable[[str], None]


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


def check_files(material: Material, problem: Problem) -> None:
    """Check that every file of the problem was handed in.

    Raises:
        NotJudgedError: one was not; the message says what was found instead.
    """
    submission = material.submission
    for file in problem.files:
        if file not in submission.files:
            raise NotJudgedError(submission.problems.get(file, f"{file} is missing."))


def built(material: Material, file: str, build: Build) -> tuple[Path, BuildResult]:
    """The library of ``build``, which is that of ``file`` or of a part of it, and how it was built.

    Raises:
        NotJudgedError: it did not compile, or uses what a submission may not use.
    """
    result = BuildResult(
        ok=build.ok,
        seconds=build.seconds,
        cached=build.cached,
        command=build.command,
        log=build.log,
        resources=[KernelResources(**vars(kernel)) for kernel in build.resources],
    )
    contents = material.submission.contents(file)
    if build.library is None:
        raise NotJudgedError(_uncompiled(material.builds[file], contents), result)
    if reasons := violations(build.library, contents, material.assignment.rules.allowed_imports):
        raise NotJudgedError(f"{file} uses what a submission may not use", result, Verdict.UNTRUSTED, reasons)
    return build.library, result


def _uncompiled(build: FileBuild, contents: Mapping[str, bytes]) -> str:
    file = build.whole.source
    if build.partial is not None:
        return f"{file} did not compile, for what this problem needs"
    if missing := missing_header(build.whole.log, file, contents):
        return f"{file} did not compile: {missing}"
    return (
        f"{file} did not compile, and without the functions that the errors are in, nothing of it can be "
        "graded"
    )
