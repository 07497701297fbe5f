"""One problem of a submission, from its libraries to its result: load, run cases, check, measure, score."""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar, get_args

from grader import template
from grader.build.exports import find as find_entry_point
from grader.build.headers import missing as missing_header
from grader.build.imports import violations
from grader.devices import condition, profile
from grader.devices.device import Call, Memory
from grader.excerpt import excerpt
from grader.judge.correctness import Excuse, Judged, arguments, beside, judge
from grader.judge.measure import Measured, Timing, measure
from grader.judge.training import Training, measure_training
from grader.launchers import LauncherError, launcher, launcher_copies
from grader.problems import load_all
from grader.results import (
    BuildResult,
    CaseResult,
    CheckResult,
    CorrectnessResult,
    FindingRecord,
    HintRecord,
    KernelResources,
    PerformanceResult,
    ProblemResult,
    Tool,
    TrustResult,
)
from grader.scoring import ONLY_REPORTED, memory_verdict, score_problem, score_without_cases, worst
from grader.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from grader.assignments.assignment import Assignment, ProblemPoints
    from grader.bench import Bench, Machine
    from grader.build.compile import Build
    from grader.build.partial import FileBuild
    from grader.devices.device import Device, Session
    from grader.devices.gpu import Gpu
    from grader.devices.timed import TimedSession
    from grader.problems.problem import Case, Problem
    from grader.submission import Submission

NO_GPU = "not measured: no GPU here. Grade on a GPU machine, or leave it to your instructor."
NO_CASES = "not measured: this problem has no cases to time."
NOT_RIGHT = "not measured: a kernel earns points for speed once all of its cases are right."
PRINTED_CHARACTERS = 4000
TRAINING_SECONDS = 120.0  # of one turn of training steps; the first loads PyTorch's libraries
AnySession = TypeVar("AnySession", "Session", "TimedSession")


@dataclass(frozen=True)
class Material:
    """What the problems of one submission are judged on.

    Attributes:
        assignment: its points, limits and waivers.
        seed: of the inputs.
        memory: the option of ``grade``.
        submission: its files.
        builds: of those files.
        machine: what judges.
        bench: what other gradings know.
        progress: told what comes next.
        one_at_a_time: held by the problem that a GPU works for.
    """

    assignment: Assignment
    seed: int
    memory: str
    submission: Submission
    builds: Mapping[str, FileBuild]
    machine: Machine
    bench: Bench
    progress: Callable[[str], None]
    one_at_a_time: threading.Lock = field(default_factory=threading.Lock)


def without_cases(
    assignment: Assignment,
    problem_id: str,
    verdict: Verdict,
    message: str,
    build: BuildResult | None = None,
    reasons: tuple[str, ...] = (),
) -> ProblemResult:
    """The result of a problem of which no case ran."""
    entry = assignment.problem(problem_id)
    problem = load_all().get(problem_id)
    score = score_without_cases(entry, assignment.group_points, problem.groups if problem else (), verdict)
    return ProblemResult(
        id=entry.id,
        title=entry.title,
        verdict=score.verdict,
        points=score.points,
        message=message,
        build=build,
        correctness=CorrectnessResult(verdict=score.correctness, groups=list(score.groups)),
        performance=PerformanceResult(verdict=Verdict.NOT_MEASURED, target=entry.target),
        trust=TrustResult(verdict=Verdict.UNTRUSTED if reasons else Verdict.PASS, reasons=list(reasons)),
    )


def _launchers(file: str) -> tuple[str, ...]:
    """The entry points of all problems that are in ``file``."""
    return tuple(problem.entry_point for problem in load_all().values() if problem.file == file)


class _InterruptedError(Exception):
    """Raised between cases once the run was interrupted."""


class _NotJudgedError(Exception):
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


class ProblemJudge:
    """Judges one problem; ``stop`` ends it from another thread."""

    def __init__(self, material: Material, entry: ProblemPoints, problem: Problem) -> None:
        self._material = material
        self._assignment = material.assignment
        self._machine = material.machine
        self._entry = entry
        self._problem = problem
        self._submission = material.submission
        self._notes: list[str] = []
        self._stopped = threading.Event()
        self._session: Session | TimedSession | None = None
        self._timed: tuple[Path, Memory] | None = None  # the library of a launcher that was timed
        self.id = entry.id
        self.machine_failed = False  # in the middle of the cases

    def stop(self) -> None:
        """End the session that runs, if one does, and judge no further case."""
        self._stopped.set()
        if self._session is not None:
            self._session.close()

    def check(self) -> Callable[[], ProblemResult]:
        """Judge whether the problem is solved; what comes back measures the speed and gives the result."""
        try:
            libraries, built = self._libraries()
            memory = self._memory() if self._problem.libraries else self._launcher(libraries, built)
        except _NotJudgedError as error:
            return partial(
                without_cases,
                self._assignment,
                self._entry.id,
                error.verdict,
                str(error),
                error.build,
                error.reasons,
            )
        return self._judged(libraries, None if self._problem.libraries else built, memory)

    def _libraries(self) -> tuple[dict[Path, tuple[str, ...]], BuildResult]:
        """The libraries to load with the entry points in them, and how the last one was built."""
        problem = self._problem
        libraries: dict[Path, tuple[str, ...]] = {}
        for file in (problem.file, *problem.sources):
            if file not in self._submission.files:
                raise _NotJudgedError(self._submission.problems.get(file, f"{file} is missing."))
        for file in problem.sources:
            build = self._usable(self._material.builds[file])
            result = _build_result(build)
            if build.library is None:
                raise _NotJudgedError(self._uncompiled(self._material.builds[file]), result)
            written = self._submission.contents(file)
            if reasons := violations(build.library, written, self._assignment.allowed_imports):
                message = f"{file} uses what a submission may not use"
                raise _NotJudgedError(message, result, Verdict.UNTRUSTED, reasons)
            wanted = self._entry_points(file)
            found = [find_entry_point(build.library, one, file, _launchers(file)) for one in wanted]
            if unfit := [one.note for one in found if one.note and (problem.libraries or not one.symbol)]:
                raise _NotJudgedError(unfit[0], result)
            libraries[build.library] = tuple(one.symbol for one in found)
            self._notes += [one.note for one in found if one.note]
        return libraries, result

    def _usable(self, built: FileBuild) -> Build:
        """The build of the whole file, or of the rest of it if that is all that this problem needs."""
        if built.partial is None or self._problem.libraries or built.partial.lacks(self._problem.entry_point):
            return built.whole
        self._notes.append(built.partial.note)
        return built.partial.build

    def _uncompiled(self, built: FileBuild) -> str:
        file = built.whole.source
        if built.partial is not None:
            return f"{file} did not compile, for what this problem needs"
        if missing := missing_header(built.whole.log, file, self._submission.contents(file)):
            return f"{file} did not compile: {missing}"
        return (
            f"{file} did not compile, and without the functions that the errors are in, nothing of it can be "
            "graded"
        )

    def _entry_points(self, file: str) -> tuple[str, ...]:
        """What a library must export: the problem's own entry point, or all that a model may call."""
        if not self._problem.libraries:
            return (self._problem.entry_point,)
        return _launchers(file)

    def _launcher(self, libraries: Mapping[Path, tuple[str, ...]], built: BuildResult) -> Memory:
        """The memory that the launcher works on; from now on the problem is as the launcher takes it."""
        forced = None if self._material.memory == "auto" else Memory(self._material.memory)
        try:
            found = launcher(self._problem, self._submission.contents(self._problem.file), forced)
        except LauncherError as error:
            raise _NotJudgedError(str(error), built) from error
        ((symbol,),) = libraries.values()
        self._problem = replace(found.problem, entry_point=symbol)
        self._notes += found.notes
        if found.memory is Memory.HOST:
            self._entry = self._entry.with_host_pointers()
        return found.memory

    def _memory(self) -> Memory:
        """The memory that the launchers of a model's kernels work on: the host's if any of them copies."""
        if self._material.memory != "auto":
            return Memory(self._material.memory)
        host = any(
            launcher_copies(self._submission.contents(file), entry_point)
            for file in self._problem.sources
            for entry_point in self._entry_points(file)
        )
        return Memory.HOST if host else Memory.DEVICE

    def _judged(
        self, libraries: Mapping[Path, tuple[str, ...]], built: BuildResult | None, memory: Memory
    ) -> Callable[[], ProblemResult]:
        machine = self._machine
        cases = self._problem.cases(self._material.seed)
        with self._turn():
            judged = self._run_cases(machine.device, libraries, cases, memory)
        checked = (
            judged
            if machine.checker is machine.device
            else self._run_cases(machine.checker, libraries, cases, memory)
        )
        self.machine_failed = judged.machine_failed or checked.machine_failed
        if self._problem.libraries:  # what a model launches is counted by the simulator alone
            judged = replace(judged, cases=tuple(map(_worse, judged.cases, checked.cases)))
        elif checked is not judged:
            judged = replace(judged, cases=tuple(beside(judged.cases, checked.cases, machine.device.name)))
        return partial(self._result, libraries, built, memory, judged, checked)

    def _result(
        self,
        libraries: Mapping[Path, tuple[str, ...]],
        built: BuildResult | None,
        memory: Memory,
        judged: Judged,
        checked: Judged,
    ) -> ProblemResult:
        entry, problem = self._entry, self._problem
        sources = {
            name: text for file in problem.sources for name, text in self._submission.contents(file).items()
        }
        with self._turn():
            measured = self._measured(libraries, judged, memory)
        reasons = [*judged.untrusted, *measured.reasons]
        score = score_problem(
            entry,
            self._assignment.group_points,
            problem.groups,
            judged.cases,
            memory_verdict((finding.kind for finding in checked.findings), checked.cases, checked=True),
            measured.performance,
        )
        return ProblemResult(
            id=entry.id,
            title=entry.title,
            verdict=score.verdict,
            points=score.points,
            memory=memory.value,
            notes=self._notes,
            build=built,
            correctness=CorrectnessResult(
                verdict=score.correctness,
                summary=judged.summary,
                groups=list(score.groups),
                cases=list(judged.cases),
            ),
            checks=[_check(tool, checked, sources) for tool in get_args(Tool)],
            performance=measured.performance,
            hints=[
                HintRecord(**vars(hint), source=excerpt(sources, hint.file, hint.line))
                for hint in checked.hints
            ],
            trust=TrustResult(verdict=Verdict.UNTRUSTED if reasons else Verdict.PASS, reasons=reasons),
            printed=judged.printed[-PRINTED_CHARACTERS:],
        )

    def _run_cases(
        self,
        device: Device,
        libraries: Mapping[Path, tuple[str, ...]],
        cases: tuple[Case, ...],
        memory: Memory,
    ) -> Judged:
        limits = self._assignment.limits

        def begin(case: Case) -> None:
            self._begin(f"{self._entry.id} on {device.name}: {case.name}")

        def open_session() -> Session:
            if self._problem.libraries:
                model = self._submission.files[self._problem.file]
                return self._watch(device.open_model(model, libraries, memory))
            ((library, entry_points),) = libraries.items()
            return self._watch(device.open(library, entry_points))

        return judge(
            replace(
                self._material.bench.problems(self._material.seed)[self._problem.id],
                entry_point=self._problem.entry_point,
                parameters=self._problem.parameters,
            ),
            cases,
            open_session,
            device.schedules,
            memory=memory,
            seconds=limits.run_seconds_gpu if device.kind == "gpu" else limits.run_seconds_sim,
            begin=begin,
            excuses=self._excuses(cases),
        )

    def _excuses(self, cases: tuple[Case, ...]) -> dict[str, Excuse]:
        """What the assignment does not hold against anyone, by the names of cases."""
        waivers = [one for one in self._assignment.waivers if one.problem == self._entry.id]
        return {
            case.name: Excuse(frozenset(waiver.findings), waiver.reason, waiver.numbers)
            for waiver in reversed(waivers)
            for case in cases
            if waiver.covers(case.sizes, case.distribution)
        }

    def _measured(
        self, libraries: Mapping[Path, tuple[str, ...]], judged: Judged, memory: Memory
    ) -> Measured:
        """The speed; of no interest, and not measured, where the numbers are wrong."""
        machine, target = self._machine, self._entry.target
        if machine.gpu is None:
            return Measured(_no_speed(Verdict.NOT_MEASURED, target, NO_GPU))
        if any(case.verdict is not Verdict.PASS for case in judged.cases if not case.waived):
            return Measured(_no_speed(Verdict.FAIL, target, NOT_RIGHT))
        if not self._problem.timing_cases(self._material.seed):
            return Measured(_no_speed(Verdict.NOT_MEASURED, target, NO_CASES))
        gpu, entry_points, baseline = machine.gpu, (self._problem.entry_point,), machine.baseline
        if self._problem.libraries:
            training = Training(
                problem=self._problem,
                open=lambda file: self._watch(gpu.open_model(file, libraries, memory)),
                model=self._submission.files[self._problem.file],
                unfused=template.folder() / self._problem.file,
                memory=memory,
                seed=self._material.seed,
                seconds=TRAINING_SECONDS,
                progress=self._begin,
            )
            return measure_training(training, target)
        library = next(iter(libraries))
        timing = Timing(
            problem=self._problem,
            l2_bytes=gpu.l2_bytes,
            open=lambda: self._watch(gpu.open_timed(library, entry_points, list(baseline))),
            baseline=baseline,
            seed=self._material.seed,
            seconds=self._assignment.limits.run_seconds_gpu,
            progress=self._begin,
            look=condition.look,
        )
        measured = measure(timing, target, memory)
        self._timed = library, memory
        if self._material.bench.pytorch is None:
            return measured
        return replace(
            measured, performance=self._material.bench.pytorch.beside(self._problem.id, measured.performance)
        )

    def profiled(self, gpu: Gpu) -> list[str]:
        """What Nsight Compute sees of the largest case that was timed; nothing if none was.

        Raises:
            ProfileError: it cannot be used here; the text says why.
        """
        if self._timed is None:
            return []
        (library, memory), problem = self._timed, self._problem
        case = max(problem.timing_cases(self._material.seed), key=problem.minimal_bytes)
        self._begin(f"{self.id}: profiling {case.name}")
        given = arguments(problem, case, problem.inputs(case))
        with self._turn():
            return gpu.profiled(library, Call(problem.entry_point, given, profile.CALL_SECONDS, memory))

    def _begin(self, what: str) -> None:
        """Say what comes next, unless the run was interrupted."""
        if self._stopped.is_set():
            raise _InterruptedError
        self._material.progress(what)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """While the device works for this problem: a GPU for no other one."""
        alone = nullcontext() if self._machine.gpu is None else self._material.one_at_a_time
        with alone, self._material.bench.turn:
            yield

    def _watch(self, session: AnySession) -> AnySession:
        """``session``, which ``stop`` will close."""
        self._session = session
        if self._stopped.is_set():  # while it opened, so that nobody closed it
            session.close()
            raise _InterruptedError
        return session


def _worse(one: CaseResult, other: CaseResult) -> CaseResult:
    """The result of a case on two devices."""
    return other if worst((one.verdict, other.verdict)) is not one.verdict else one


def _no_speed(verdict: Verdict, target: float, message: str) -> PerformanceResult:
    return PerformanceResult(verdict=verdict, target=target, message=message)


def _build_result(build: Build) -> BuildResult:
    return BuildResult(
        ok=build.ok,
        seconds=build.seconds,
        cached=build.cached,
        command=build.command,
        log=build.log,
        resources=[KernelResources(**vars(kernel)) for kernel in build.resources],
    )


def _check(tool: Tool, checked: Judged, sources: Mapping[str, bytes]) -> CheckResult:
    mine = [finding for finding in (*checked.findings, *checked.waived) if finding.tool == tool]
    counting = [
        finding for finding in mine if finding.kind not in ONLY_REPORTED and finding not in checked.waived
    ]
    return CheckResult(
        tool=tool,
        verdict=Verdict.FAIL if counting else Verdict.PASS,
        findings=[
            FindingRecord(
                waived=checked.waived.get(finding, ""),
                kind=finding.kind,
                kernel=finding.kernel,
                file=finding.file,
                line=finding.line,
                message=finding.message,
                source=excerpt(sources, finding.file, finding.line),
            )
            for finding in mine
        ],
    )
