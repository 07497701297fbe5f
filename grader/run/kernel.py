"""A submission's answer to a kernel problem: its launcher, how it is opened, compared and timed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from grader.devices import condition
from grader.devices.device import Memory
from grader.judge.correctness.cases import beside
from grader.judge.timing.measure import Measured, Timing, measure
from grader.languages.language import LauncherError
from grader.problems.problem import KernelProblem
from grader.run import pointers
from grader.run.pointers import Candidate
from grader.run.preparation import NotJudgedError, check_files, inspected

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from grader.assignments.rules import ProblemPoints
    from grader.devices.device import Device, Session
    from grader.devices.gpu import Gpu
    from grader.judge.correctness.cases import Judged
    from grader.records.record import BuildResult, CaseResult
    from grader.run.judging import Conduct
    from grader.run.preparation import Material


@dataclass(frozen=True)
class PreparedKernel:
    """A launcher that can be called; see ``Answer`` in ``judging.py``.

    Attributes:
        problem: as the launcher takes it, under the linker's name of the entry point.
        entry: with the target of launchers that take such pointers.
        memory: which pointers the launcher takes.
        library: that it is in.
        notes: what differs from the assignment's text.
        build: how the library was built.
    """

    problem: KernelProblem
    entry: ProblemPoints
    memory: Memory
    library: Path
    notes: tuple[str, ...]
    build: BuildResult | None

    def open(self, device: Device) -> Session:
        """Start a runner with the library."""
        return device.open(self.library, (self.problem.entry_point,))

    def combined(self, judged: Judged, checked: Judged, device: str) -> tuple[CaseResult, ...]:
        """The cases of the GPU called ``device``, with what the simulator saw of them."""
        return tuple(beside(judged.cases, checked.cases, device))

    def measured(self, gpu: Gpu, baseline: Mapping[Path, tuple[str, ...]], conduct: Conduct) -> Measured:
        """Time the launcher against the unfused baseline."""
        material, entry_points = conduct.material, (self.problem.entry_point,)
        timing = Timing(
            problem=self.problem,
            l2_bytes=gpu.l2_bytes,
            open=lambda: conduct.watch(gpu.open_timed(self.library, entry_points, list(baseline))),
            baseline=baseline,
            seed=material.seed,
            seconds=material.assignment.rules.limits.run_seconds_gpu,
            progress=conduct.begin,
            look=condition.look,
        )
        found = measure(timing, self.entry.target, self.memory)
        others = material.bench.pytorch
        if others is None:
            return found
        return replace(found, performance=others.beside(self.problem.id, found.performance))


def prepare(conduct: Conduct, entry: ProblemPoints, problem: KernelProblem) -> PreparedKernel:
    """The launcher of ``problem`` in a submission.

    Raises:
        NotJudgedError: there is none that can be called.
    """
    material = conduct.material
    check_files(material, problem)
    file, notes = problem.file, []
    file_build = material.builds[file]
    build = file_build.whole
    if file_build.partial is not None and not file_build.partial.lacks(problem.entry_point):
        build = file_build.partial.build
        notes.append(file_build.partial.note)
    wanted, others = (problem.entry_point,), _in_file(material, file)
    library, (found,), result = inspected(material, file, build, wanted, others)
    if not found.symbol:
        raise NotJudgedError(found.note, result)
    notes += [found.note] if found.note else []
    candidate = Candidate(problem, material.submission.contents(file), library, found.symbol)
    try:
        called = pointers.called(conduct, candidate)
    except LauncherError as error:
        raise NotJudgedError(str(error), result) from error
    host = called.memory is Memory.HOST
    return PreparedKernel(
        problem=replace(called.problem, entry_point=found.symbol),
        entry=entry.with_host_pointers() if host else entry,
        memory=called.memory,
        library=library,
        notes=(*notes, *called.notes),
        build=result,
    )


def _in_file(material: Material, file: str) -> tuple[str, ...]:
    """The entry points of all problems that are in ``file``."""
    problems = material.assignment.problems.values()
    return tuple(one.entry_point for one in problems if isinstance(one, KernelProblem) and one.file == file)
