"""A submission's answer to a model problem: its PyTorch file, how it is opened, compared and trained."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from grader.devices.device import Memory, ModelProgram
from grader.judge.correctness.arrays import ARRAYS
from grader.judge.timing.measure import PRECISE, UNTIL_CLEAR
from grader.judge.timing.training import Pairs, Training, measure_training
from grader.languages import policy
from grader.languages.language import LauncherError
from grader.problems.problem import ModelProblem
from grader.run import pointers
from grader.run.kind import ProblemKind
from grader.run.pointers import Candidate
from grader.run.preparation import NotJudgedError, check_files, forbidden_use, inspected
from grader.run.scoring import goal, worst

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from grader.assignments.rules import ProblemPoints
    from grader.devices.device import Device, Session
    from grader.devices.gpu import Gpu
    from grader.judge.correctness.cases import Judged
    from grader.judge.timing.measure import Measured
    from grader.problems.problem import Case
    from grader.records.record import BuildResult, CaseResult
    from grader.run.preparation import Material
    from grader.run.prepared import Conduct

TRAINING_SECONDS = 120.0  # of one turn of training steps; the first loads PyTorch's libraries


@dataclass
class Ahead:
    """Runners that were started before it was known that anything will be measured."""

    pairs: Pairs | None = None

    def take(self) -> Pairs | None:
        """Them, once; None if there are none."""
        pairs, self.pairs = self.pairs, None
        return pairs


@dataclass(frozen=True)
class PreparedModel:
    """A PyTorch file that can be called; see ``Prepared``.

    Attributes:
        problem: what it answers.
        entry: its points.
        memory: which pointers its launchers take.
        program: the student's file and what it is called with.
        unfused: the same with the template's file, which uses no kernels.
        libraries: with its launchers.
        ahead: what its measurement has begun with.
    """

    problem: ModelProblem
    entry: ProblemPoints
    memory: Memory
    program: ModelProgram
    unfused: ModelProgram
    libraries: Mapping[Path, tuple[str, ...]]
    notes: tuple[str, ...]
    build: BuildResult | None = None  # the problems that the launchers belong to show theirs
    ahead: Ahead = field(default_factory=Ahead)

    def lacks(self, _case: Case) -> str:
        """Nothing: a model has all that its cases call."""
        return ""

    def open(self, device: Device) -> Session:
        """Start a runner with the file and the libraries."""
        return device.open_model(self.program, self.libraries, self.memory)

    def combined(self, judged: Judged, checked: Judged, _device: str) -> tuple[CaseResult, ...]:
        """The worse of the two of each case: what a model launches is counted by the simulator alone."""
        return tuple(
            other if worst((result.verdict, other.verdict)) is not result.verdict else result
            for result, other in zip(judged.cases, checked.cases, strict=True)
        )

    def code_bytes(self, _conduct: Conduct) -> tuple[int | None, int | None]:
        """Those of no file: a model is asked for no code; see ``Prepared``."""
        return None, None

    def foresee(self, gpu: Gpu, conduct: Conduct) -> None:
        """Start the runners that train, which takes ten seconds."""
        self.ahead.pairs = Pairs(self._training(gpu, conduct))

    def forget(self) -> None:
        """End them, as nothing will be measured."""
        if (pairs := self.ahead.take()) is not None:
            pairs.close()

    def measured(self, gpu: Gpu, _baseline: Mapping[Path, tuple[str, ...]], conduct: Conduct) -> Measured:
        """Train with the file and with the template's in turn."""
        return measure_training(self._training(gpu, conduct), goal(self.entry), self.ahead.take())

    def _training(self, gpu: Gpu, conduct: Conduct) -> Training:
        return Training(
            problem=self.problem,
            open=lambda program: conduct.watch(gpu.open_model(program, self.libraries, self.memory)),
            fused=replace(self.program, trains=True),
            unfused=replace(self.unfused, trains=True),
            memory=self.memory,
            seed=conduct.material.seed,
            seconds=TRAINING_SECONDS,
            progress=conduct.begin,
            alone=lambda: gpu.sharing.alone(conduct.waiting),
            effort=PRECISE if conduct.material.precise else UNTIL_CLEAR,
        )


def prepare(conduct: Conduct, entry: ProblemPoints, problem: ModelProblem) -> PreparedModel:
    """The PyTorch file of ``problem`` in a submission, with the libraries of its kernels.

    Raises:
        NotJudgedError: a file is missing, did not compile, lacks a launcher that can be called, or uses what
            it may not use.
    """
    material = conduct.material
    check_files(material, problem)
    libraries: dict[Path, tuple[str, ...]] = {}
    needed = {
        launcher.entry_point: launcher
        for case in problem.cases(material.seed)
        for launcher, *_ in problem.needs(case)
    }
    template = material.assignment.template
    modules = tuple(template / name for name in problem.modules)
    _check_policy(material, problem.file, modules)
    candidates: list[Candidate] = []
    for file, launchers in problem.launchers.items():
        build = material.builds[file].full
        library, entries, result = inspected(material, file, build, launchers, launchers)
        if unfit := [entry_point.note for entry_point in entries if entry_point.note]:
            raise NotJudgedError(unfit[0], result)
        libraries[library] = tuple(entry_point.symbol for entry_point in entries)
        contents = material.submission.contents(file)
        candidates += [
            Candidate(needed[name], contents, library, entry_point.symbol)
            for name, entry_point in zip(launchers, entries, strict=True)
            if name in needed
        ]
    program = ModelProgram(material.submission.files[problem.file], problem.harness, modules)
    return PreparedModel(
        problem=problem,
        entry=entry,
        memory=_memory(conduct, candidates),
        program=program,
        unfused=replace(program, file=template / problem.file),
        libraries=libraries,
        notes=(),
    )


def _check_policy(material: Material, file: str, imports: Iterable[Path]) -> None:
    """Check that the PyTorch file uses nothing but what it may use; one that is no Python uses nothing.

    Raises:
        NotJudgedError: it does.
    """
    try:
        tree = ast.parse(material.submission.files[file].read_bytes(), file)
    except (SyntaxError, ValueError):  # the runner tells where
        return
    modules = {path.stem: policy.public(ast.parse(path.read_bytes())) for path in imports}
    review = policy.review(tree, file, modules)
    if review.reasons:
        raise forbidden_use(file, review.reasons, mistaken=review.mistaken)


def _memory(conduct: Conduct, candidates: Iterable[Candidate]) -> Memory:
    """The memory that the launchers work on: the host's if any of them copies.

    Raises:
        NotJudgedError: one cannot be called.
    """
    if conduct.material.memory != "auto":
        return Memory(conduct.material.memory)
    try:
        host = any(pointers.called(conduct, candidate).memory is Memory.HOST for candidate in candidates)
    except LauncherError as error:
        raise NotJudgedError(str(error)) from error
    return Memory.HOST if host else Memory.DEVICE


KIND = ProblemKind("model problem", ModelProblem, prepare, ARRAYS, rank=0)
