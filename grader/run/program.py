"""A submission's answer to a program problem: the program that is built of its files, and how it is run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from grader.devices.device import Memory
from grader.judge.correctness.cases import beside
from grader.judge.correctness.programs import PROGRAMS
from grader.judge.timing.measure import Measured
from grader.languages.cache import Cache
from grader.languages.cuda.executable import Recipe, build_executable, unbuilt
from grader.languages.cuda.imports import violations
from grader.languages.jobs import compile_limits
from grader.problems.program import ProgramProblem
from grader.records.record import PerformanceResult
from grader.records.verdict import Verdict
from grader.run.kind import ProblemKind
from grader.run.preparation import NotJudgedError, build_result, check_files, forbidden_use

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from grader.assignments.rules import ProblemPoints
    from grader.devices.device import Device, Session
    from grader.devices.gpu import Gpu
    from grader.judge.correctness.cases import Judged
    from grader.problems.problem import Case
    from grader.records.record import BuildResult, CaseResult
    from grader.run.preparation import Material
    from grader.run.prepared import Conduct


@dataclass(frozen=True)
class PreparedProgram:
    """A program that can be run; see ``Prepared``.

    Attributes:
        problem: what it answers.
        entry: its points.
        executable: that was built.
        notes: what of the submission does not count.
        build: how it was built.
        memory: of pointers, of which a program gets none.
    """

    problem: ProgramProblem
    entry: ProblemPoints
    executable: Path
    notes: tuple[str, ...]
    build: BuildResult
    memory: Memory = Memory.DEVICE

    def lacks(self, _case: Case) -> str:
        """Nothing: every case runs the same program."""
        return ""

    def open(self, device: Device) -> Session:
        """Get ready to run it."""
        return device.open_program(self.executable)

    def combined(self, judged: Judged, checked: Judged, device: str) -> tuple[CaseResult, ...]:
        """The cases of the GPU called ``device``, with what the simulator saw of them."""
        return tuple(beside(judged.cases, checked.cases, device))

    def foresee(self, gpu: Gpu, conduct: Conduct) -> None:
        """Begin nothing: no program is timed."""

    def forget(self) -> None:
        """Nothing was begun."""

    def measured(self, _gpu: Gpu, _baseline: Mapping[Path, tuple[str, ...]], _conduct: Conduct) -> Measured:
        """Nothing: a program problem has no cases to time."""
        return Measured(PerformanceResult(verdict=Verdict.NOT_MEASURED, target=self.entry.target))


def prepare(conduct: Conduct, entry: ProblemPoints, problem: ProgramProblem) -> PreparedProgram:
    """The program of a submission for ``problem``.

    Raises:
        NotJudgedError: a file is missing, it did not compile or link, or it uses what it may not use.
    """
    material = conduct.material
    check_files(material, problem)
    contents = _contents(material, problem)
    limits = material.assignment.rules.limits
    machine = material.machine
    conduct.begin(f"{entry.id}: compiling {', '.join(problem.sources)}")
    build = build_executable(
        Recipe(problem.sources, contents, problem.given, problem.flags, problem.make),
        machine.toolchain,
        machine.sandbox,
        compile_limits(limits.compile_seconds, int(limits.compile_memory_gib * 2**30)),
        Cache(),
        machine.device.architecture,
    )
    result = build_result(build)
    if build.artefact is None:
        raise NotJudgedError(unbuilt(build), result)
    allowed = (*material.assignment.rules.allowed_imports, *_libraries(problem.flags))
    if reasons := violations(build.artefact, contents, allowed, program=True):
        raise forbidden_use(problem.file, reasons, result, misspelt=False)
    ignored = [name for name, text in problem.given.items() if contents.get(name, text) != text]
    notes = (f"{' and '.join(ignored)}: the assignment's was taken, not yours",) if ignored else ()
    return PreparedProgram(problem, entry, build.artefact, notes, result)


def _contents(material: Material, problem: ProgramProblem) -> dict[str, bytes]:
    """The student's files, and the headers that belong to them, by path."""
    contents: dict[str, bytes] = {}
    for file in problem.sources:
        contents |= material.submission.contents(file)
    return contents


def _libraries(flags: Iterable[str]) -> tuple[str, ...]:
    """The libraries that the assignment links with, as the policy's exceptions."""
    names = (PurePosixPath(flag.removeprefix("-l")).name for flag in flags if flag.startswith("-l"))
    return tuple(rf"lib{re.escape(name)}\.so(\.\d+)*" for name in names)


KIND = ProblemKind("program problem", ProgramProblem, prepare, PROGRAMS)
