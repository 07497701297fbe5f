"""A submission's answer to a kernel problem: its launcher, how it is opened, compared and timed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from grader.devices import condition
from grader.devices.device import Memory
from grader.judge.correctness.arrays import ARRAYS
from grader.judge.correctness.cases import beside
from grader.judge.timing.measure import PRECISE, UNTIL_CLEAR, Measured, Timing, measure
from grader.languages.language import LauncherError
from grader.problems.problem import KernelProblem, called_once
from grader.run import pointers
from grader.run.kind import ProblemKind
from grader.run.pointers import Candidate
from grader.run.preparation import NotJudgedError, check_files, inspected
from grader.run.scoring import goal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from grader.assignments.rules import ProblemPoints
    from grader.devices.device import Device, Session
    from grader.devices.gpu import Gpu
    from grader.judge.correctness.cases import Judged
    from grader.languages.language import Language, Launcher
    from grader.problems.problem import Case
    from grader.records.record import BuildResult, CaseResult
    from grader.run.preparation import Material
    from grader.run.prepared import Conduct


@dataclass(frozen=True)
class PreparedKernel:
    """A launcher that can be called; see ``Prepared``.

    Attributes:
        problem: as the launcher takes it, under the linker's name of the entry point.
        entry: with the target of launchers that take such pointers, and of the language.
        memory: which pointers the launcher takes.
        language: that it is written in.
        artefact: that it is in.
        notes: what differs from the assignment's text.
        build: how the artefact was built.
        missing: why there is none of several launchers, by their names in the problem.
    """

    problem: KernelProblem
    entry: ProblemPoints
    memory: Memory
    language: Language
    artefact: Path
    notes: tuple[str, ...]
    build: BuildResult | None
    missing: Mapping[str, str]

    def lacks(self, case: Case) -> str:
        """Why there is no launcher that ``case`` calls; empty where there is each."""
        called = (call.launcher for call in self.problem.calls(case))
        return next((self.missing[launcher] for launcher in called if launcher in self.missing), "")

    def open(self, device: Device) -> Session:
        """Start a runner with the artefact."""
        return self.language.open(device, self.artefact, self.problem.entry_points)

    def code_bytes(self, conduct: Conduct) -> tuple[int | None, int | None]:
        """Bytes of the library's machine code; see ``Prepared``."""
        return self.language.code_bytes(self.artefact), conduct.material.reference_code.get(self.problem.file)

    def combined(self, judged: Judged, checked: Judged, device: str) -> tuple[CaseResult, ...]:
        """The cases of the GPU called ``device``, with what the simulator saw of them."""
        return tuple(beside(judged.cases, checked.cases, device))

    def foresee(self, gpu: Gpu, conduct: Conduct) -> None:
        """Begin nothing: its runners start within a second."""

    def forget(self) -> None:
        """Nothing was begun."""

    def measured(self, gpu: Gpu, baseline: Mapping[Path, tuple[str, ...]], conduct: Conduct) -> Measured:
        """Time the launcher against the baseline, or against the limit that memory or arithmetic sets."""
        material, entry_points = conduct.material, self.problem.entry_points
        timing = Timing(
            problem=self.problem,
            l2_bytes=gpu.l2_bytes,
            open=lambda: conduct.watch(
                self.language.open_timed(gpu, self.artefact, entry_points, list(baseline))
            ),
            baseline=baseline,
            seed=material.seed,
            seconds=material.assignment.rules.limits.run_seconds_gpu,
            progress=conduct.begin,
            look=condition.look,
            measure=self.entry.measure,
            captured=self.language.captured,
            alone=lambda: gpu.sharing.alone(conduct.waiting),
            shared=lambda: gpu.sharing.shared(conduct.waiting),
            effort=PRECISE if material.precise else UNTIL_CLEAR,
            threads=material.bench.threads,
        )
        measured = measure(timing, goal(self.entry), self.memory)
        return replace(
            measured, performance=measured.performance.model_copy(update={"measure": self.entry.measure})
        )


def prepare(conduct: Conduct, entry: ProblemPoints, problem: KernelProblem) -> PreparedKernel:
    """The launcher of ``problem`` in a submission.

    Raises:
        NotJudgedError: there is none that can be called.
    """
    material = conduct.material
    check_files(material, problem)
    file, notes = problem.file, [material.note]
    file_build = material.builds[file]
    build = file_build.full
    if file_build.partial is not None and not all(map(file_build.partial.lacks, problem.entry_points)):
        build = file_build.partial.build
        notes.append(file_build.partial.note)
    artefact, entries, result = inspected(
        material, file, build, problem.entry_points, _in_file(material, file)
    )
    contents = material.submission.contents(file)
    launchers: dict[str, Launcher] = {}
    missing: dict[str, str] = {}
    for name, launcher, entry_point in zip(
        problem.launchers or ("",), problem.launchers.values() or (problem,), entries, strict=True
    ):
        if not entry_point.symbol:
            missing[name] = entry_point.note
            continue
        if problem.calls is not called_once:  # none of them can be tried alone
            memory: Memory | None = Memory.DEVICE
        else:
            memory = next(iter(launchers.values())).memory if launchers else material.language.memory
        try:
            called = pointers.called(
                conduct, Candidate(launcher, contents, artefact, entry_point.symbol), memory
            )
        except LauncherError as error:
            missing[name] = str(error)
            continue
        launchers[name] = called
        notes += [entry_point.note, *called.notes]
    if not launchers:
        raise NotJudgedError(next(iter(missing.values())), result)
    return _prepared(entry, problem, launchers, missing, material.language, artefact, notes, result)


def _prepared(
    entry: ProblemPoints,
    problem: KernelProblem,
    launchers: Mapping[str, Launcher],
    missing: Mapping[str, str],
    language: Language,
    artefact: Path,
    notes: Sequence[str],
    build: BuildResult,
) -> PreparedKernel:
    first, points = next(iter(launchers.values())), entry.in_language(language.name)
    taken = {name: launcher.problem for name, launcher in launchers.items()}
    return PreparedKernel(
        problem=replace(problem, launchers=taken) if problem.launchers else first.problem,
        entry=points.with_host_pointers() if first.memory is Memory.HOST else points,
        memory=first.memory,
        language=language.called_by(first.problem),
        artefact=artefact,
        notes=tuple(dict.fromkeys(filter(None, notes))),
        build=build,
        missing=missing,
    )


def _in_file(material: Material, file: str) -> tuple[str, ...]:
    """The entry points of all problems that are in ``file``."""
    problems = material.assignment.problems.values()
    kernels = (other for other in problems if isinstance(other, KernelProblem) and other.file == file)
    return tuple(entry_point for kernel in kernels for entry_point in kernel.entry_points)


KIND = ProblemKind("kernel problem", KernelProblem, prepare, ARRAYS)
