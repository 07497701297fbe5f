"""One grading run from a path to a record: collect, build, judge, score.

Whatever goes wrong ends in a valid record: a faulty submission with a score of 0 and the reason, a faulty
machine with undecided points, an interrupt with everything that was judged before it.
"""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar, get_args

import torch

from grader import __version__, template
from grader.baseline.programs import build_baseline
from grader.build.cache import Cache
from grader.build.compile import BuildError, build, build_all, compile_limits
from grader.build.exports import find as find_entry_point
from grader.build.imports import violations
from grader.build.partial import FileBuild, build_partly
from grader.build.toolchain import ToolchainError
from grader.build.toolchain import find as find_toolchain
from grader.devices import condition, profile
from grader.devices.device import Call, DeviceError, Memory
from grader.devices.gpu import Gpu
from grader.devices.select import select as select_device
from grader.excerpt import excerpt
from grader.exit_codes import ExitCode
from grader.identity import judging_sha256
from grader.judge import pytorch
from grader.judge.correctness import Excuse, Judged, arguments, judge
from grader.judge.measure import Measured, Timing, measure
from grader.judge.remembered import remembered
from grader.judge.training import Training, measure_training
from grader.launchers import LauncherError, launcher, launcher_copies
from grader.problems import load_all
from grader.results import (
    BuildResult,
    CaseResult,
    CheckResult,
    CorrectnessResult,
    DeviceInfo,
    FindingRecord,
    GraderInfo,
    HintRecord,
    KernelResources,
    PerformanceResult,
    ProblemResult,
    Record,
    SandboxInfo,
    SubmissionInfo,
    Tool,
    TrustResult,
)
from grader.sandbox.backends import select as select_sandbox
from grader.sandbox.sandbox import SandboxError
from grader.scoring import (
    ONLY_REPORTED,
    memory_verdict,
    score_problem,
    score_without_cases,
    total,
    worst,
)
from grader.submission import SubmissionError, collect, printable
from grader.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from grader.assignments.assignment import Assignment, ProblemPoints
    from grader.build.compile import Build
    from grader.build.toolchain import Toolchain
    from grader.devices.device import Device, Session
    from grader.devices.timed import TimedSession
    from grader.problems.problem import Case, Problem
    from grader.sandbox.sandbox import Sandbox
    from grader.submission import Submission

NO_GPU = "not measured: no GPU here. Grade on a GPU machine, or leave it to your instructor."
NO_CASES = "not measured: this problem has no cases to time."
NOT_RIGHT = "not measured: a kernel earns points for speed once all of its cases are right."
NOT_PROFILED = "not profiled: no GPU here"
PRINTED_CHARACTERS = 4000
TRAINING_SECONDS = 120.0  # of one turn of training steps; the first loads PyTorch's libraries
AnySession = TypeVar("AnySession", "Session", "TimedSession")


@dataclass(frozen=True)
class Request:
    """What to grade and how, as the command line says it."""

    path: Path
    assignment: Assignment
    problems: tuple[str, ...]
    device: str
    sandbox: str
    memory: str
    seed: int
    profile: bool = False  # whether to look at the kernels with Nsight Compute


@dataclass(frozen=True)
class Machine:
    """What was found on this machine to grade with, and how a record tells it."""

    sandbox: Sandbox
    sandbox_info: SandboxInfo
    device_info: DeviceInfo
    toolchain: Toolchain
    device: Device
    checker: Device  # the sim, which has the checkers; the device itself without a GPU
    gpu: Gpu | None  # the device where it has a clock
    baseline: Mapping[Path, tuple[str, ...]]  # what speed is measured against, built for that GPU


class Bench:
    """What the gradings of one process share.

    Args:
        remembers: whether to look at the machine once, and to compute inputs and oracles once for all
            submissions that meet the same seed (400 MB for the first assignment).
        problems_at_once: how many problems of a submission are judged side by side on the sim.
        turn: held while the device works for a submission, where other processes share it.
    """

    def __init__(
        self,
        *,
        remembers: bool = False,
        problems_at_once: int | None = None,
        turn: AbstractContextManager[object] | None = None,
    ) -> None:
        self._remembers = remembers
        self._machines: dict[tuple[str, str], Machine] = {}
        self._problems: dict[str, Problem] = {}
        self._seed: int | None = None
        self.problems_at_once = problems_at_once or os.cpu_count() or 1
        self.turn = turn or nullcontext()
        self.pytorch: pytorch.Others | None = None  # what the first grading on a GPU found

    def machine(self, device: str, sandbox: str, *, again: bool = False) -> Machine:
        """What there is to grade with, looked for ``again`` if so asked; see ``find_machine``."""
        if again or not self._remembers or (device, sandbox) not in self._machines:
            self._machines[device, sandbox] = find_machine(device, sandbox)
        return self._machines[device, sandbox]

    def problems(self, seed: int) -> Mapping[str, Problem]:
        """Every problem of the package, for judging its cases drawn from ``seed``."""
        if not self._remembers:
            return load_all()
        if seed != self._seed:
            self._problems = {name: remembered(problem) for name, problem in load_all().items()}
            self._seed = seed
        return self._problems


@dataclass(frozen=True)
class Built:
    """The builds of a submission by file, made ahead of its grading."""

    sha256: str  # of the submission
    builds: Mapping[str, FileBuild]


class _InterruptedError(Exception):
    """Raised between cases once the run was interrupted."""


@dataclass
class _Run:
    """What is known so far; ``record`` is valid at any moment."""

    request: Request
    bench: Bench
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    clock: float = field(default_factory=time.monotonic)
    one_at_a_time: threading.Lock = field(default_factory=threading.Lock)  # on a GPU
    submission: SubmissionInfo | None = None
    device: DeviceInfo | None = None
    sandbox: SandboxInfo | None = None
    problems: dict[str, ProblemResult] = field(default_factory=dict)

    def note(self, text: str) -> None:
        """Tell something of the submission as a whole."""
        assert self.submission is not None
        self.submission = self.submission.model_copy(update={"notes": [*self.submission.notes, text]})

    def record(self, code: ExitCode | None = None, error: str | None = None) -> Record:
        """The record of what was judged so far; problems without a result count as undecided."""
        request = self.request
        fallback = error or "not judged"
        problems = [
            self.problems.get(name) or without_cases(request.assignment, name, Verdict.INFRA_ERROR, fallback)
            for name in request.problems
        ]
        return Record(
            grader=grader_info(request.assignment),
            assignment=request.assignment.id,
            submission=self.submission
            or SubmissionInfo(name=printable(request.path.name), sha256="", files=[]),
            seed=request.seed,
            started=self.started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - self.clock, 3),
            device=self.device,
            sandbox=self.sandbox,
            score=total(problem.points for problem in problems),
            problems=problems,
            error=error,
            exit_code=_exit_code(problems) if code is None else code,
        )


def grade(
    request: Request,
    progress: Callable[[str], None] = lambda _text: None,
    bench: Bench | None = None,
    built: Built | None = None,
) -> Record:
    """Grade one submission; ``progress`` is told what happens, and what is ``built`` is not built again.

    Raises:
        UsageError: the path does not exist.
    """
    run = _Run(request, bench or Bench())
    try:
        _grade(run, progress, built)
    except SubmissionError as error:
        return _faulty(run, str(error))
    except (ToolchainError, SandboxError, BuildError, DeviceError) as error:
        return run.record(ExitCode.MACHINE_FAULT, str(error))
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        return run.record(
            ExitCode.MACHINE_FAULT, f"the machine failed: {error.strerror}{place}. Mend it and grade again."
        )
    except KeyboardInterrupt:
        return run.record(ExitCode.INTERRUPTED, "interrupted")
    return run.record()


def build_ahead(request: Request, bench: Bench) -> Built | None:
    """Build what ``grade`` will need; None if it cannot be kept until then.

    Raises:
        SubmissionError, UsageError, ToolchainError, SandboxError, BuildError, DeviceError, OSError: grading
            meets the same and tells why.
    """
    wanted = _wanted(request, load_all())
    with collect(request.path, _files(wanted)) as submission:
        machine, cache = bench.machine(request.device, request.sandbox), Cache()
        builds = _build(request, wanted, submission, machine, cache)
        return None if cache.warning else Built(submission.sha256, builds)


def graded_files(assignment: Assignment) -> tuple[str, ...]:
    """The names of the files that the assignment's problems are in."""
    known = load_all()
    graded = (problem.id for problem in assignment.problems if problem.graded and problem.id in known)
    return tuple(sorted({file for name in graded for file in known[name].files}))


def grader_info(assignment: Assignment) -> GraderInfo:
    """Who judges, and under which configuration."""
    return GraderInfo(version=__version__, config_sha256=assignment.sha256, sha256=judging_sha256())


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


def _faulty(run: _Run, error: str) -> Record:
    """Nothing of the submission can be graded: 0 points, with the reason."""
    assignment = run.request.assignment
    run.submission = SubmissionInfo(name=printable(run.request.path.name), sha256="", files=[], error=error)
    for name in run.request.problems:
        verdict = Verdict.FAIL if assignment.problem(name).graded else Verdict.NOT_MEASURED
        run.problems[name] = without_cases(assignment, name, verdict, "")
    return run.record(ExitCode.POINTS_LOST)


def _wanted(request: Request, known: Mapping[str, Problem]) -> list[tuple[ProblemPoints, Problem]]:
    entries = (request.assignment.problem(name) for name in request.problems)
    return [(entry, known[entry.id]) for entry in entries if entry.graded and entry.id in known]


def _grade(run: _Run, progress: Callable[[str], None], built: Built | None) -> None:
    request, assignment = run.request, run.request.assignment
    wanted = _wanted(request, load_all())
    for name in set(request.problems) - {entry.id for entry, _ in wanted}:
        message = "not part of this release's grading"
        run.problems[name] = without_cases(assignment, name, Verdict.NOT_MEASURED, message)
    progress("collecting")
    with collect(request.path, _files(wanted)) as submission:
        run.submission = SubmissionInfo(
            name=submission.name,
            sha256=submission.sha256,
            files=sorted(submission.files),
            notes=list(submission.notes),
        )
        progress("looking at this machine")
        machine = run.bench.machine(request.device, request.sandbox)
        run.sandbox, run.device = machine.sandbox_info, machine.device_info
        progress("compiling " + ", ".join(_sources(wanted, submission)))
        if built is not None and built.sha256 == submission.sha256:
            builds = built.builds
        else:
            cache = Cache()
            builds = _build(request, wanted, submission, machine, cache)
            if cache.warning:
                run.note(cache.warning)
        _judge_all(run, wanted, submission, builds, machine, progress)


def _files(wanted: Iterable[tuple[ProblemPoints, Problem]]) -> list[str]:
    return sorted({file for _, problem in wanted for file in problem.files})


def _sources(wanted: Iterable[tuple[ProblemPoints, Problem]], submission: Submission) -> list[str]:
    return sorted(submission.files.keys() & {file for _, problem in wanted for file in problem.sources})


def _build(
    request: Request,
    wanted: Iterable[tuple[ProblemPoints, Problem]],
    submission: Submission,
    machine: Machine,
    cache: Cache,
) -> Mapping[str, FileBuild]:
    """Build every file, and without what does not compile where one does not."""
    limits = request.assignment.limits
    contents = {name: submission.contents(name) for name in _sources(wanted, submission)}
    given = (
        machine.toolchain,
        machine.sandbox,
        compile_limits(limits.compile_seconds, int(limits.compile_memory_gib * 2**30)),
        cache,
        machine.device.architecture,
    )
    built = {}
    for name, whole in build_all(contents, *given).items():
        entry_points = [problem.entry_point for _, problem in wanted if problem.file == name]

        def compiled(changed: Mapping[str, bytes], name: str = name) -> Build:
            return build(name, changed, *given)

        rest = None if whole.ok else build_partly(whole, contents[name], entry_points, compiled)
        built[name] = FileBuild(whole, rest)
    return built


def find_machine(device: str, sandbox: str) -> Machine:
    """What this machine has to grade with, where ``device`` and ``sandbox`` are the options of ``grade``.

    Raises:
        ToolchainError, SandboxError, BuildError, DeviceError: something is missing; the message says what.
    """
    backend = select_sandbox(sandbox)
    probe = backend.probe()
    sandbox_info = SandboxInfo(
        backend=backend.name, enforced=list(probe.enforced), not_enforced=list(probe.not_enforced)
    )
    toolchain = find_toolchain(backend.image)
    choice = select_device(device, backend, toolchain.runtime)
    chosen = choice.device
    device_info = DeviceInfo(
        kind=chosen.kind, name=chosen.name, reason=choice.reason, compiler=f"nvcc {toolchain.version}"
    )
    if not isinstance(chosen, Gpu):
        return Machine(backend, sandbox_info, device_info, toolchain, chosen, chosen, None, {})
    checker = select_device("sim", backend, None).device
    baseline = build_baseline(toolchain, backend, Cache(), chosen.architecture)
    return Machine(backend, sandbox_info, device_info, toolchain, chosen, checker, chosen, baseline)


def _judge_all(
    run: _Run,
    wanted: list[tuple[ProblemPoints, Problem]],
    submission: Submission,
    builds: Mapping[str, FileBuild],
    machine: Machine,
    progress: Callable[[str], None],
) -> None:
    """Judge the problems side by side; on a GPU one after the other is timed once all else is done."""
    workers = min(len(wanted), run.bench.problems_at_once)
    judges = [_Judge(run, entry, problem, submission, builds, machine, progress) for entry, problem in wanted]
    # Each is one thread also within PyTorch, whose own threads would spin while they wait for a core.
    with ThreadPoolExecutor(max(1, workers), initializer=partial(torch.set_num_threads, 1)) as pool:
        checks = [pool.submit(judge.check) for judge in judges]
        try:
            if machine.gpu is not None:
                _time_pytorch(run, [problem for _, problem in wanted], checks)
            for (entry, _), check in zip(wanted, checks, strict=True):
                run.problems[entry.id] = pool.submit(check.result()).result()
        except BaseException:
            for check in checks:
                check.cancel()
            for judge in judges:
                judge.stop()
            raise
    if run.request.profile:
        _profile(run, judges, machine)


def _profile(run: _Run, judges: Iterable[_Judge], machine: Machine) -> None:
    """Look at the kernels that were timed, now that nothing that is decided or timed can depend on it."""
    if machine.gpu is None:
        run.note(NOT_PROFILED)
        return
    try:
        for judge in judges:
            lines = judge.profiled(machine.gpu)
            result = run.problems[judge.id]
            info = [*result.performance.info, *lines]
            performance = result.performance.model_copy(update={"info": info})
            run.problems[judge.id] = result.model_copy(update={"performance": performance})
    except profile.ProfileError as error:
        run.note(f"not profiled: {error}")


def _time_pytorch(
    run: _Run, problems: list[Problem], checks: list[Future[Callable[[], ProblemResult]]]
) -> None:
    """Wait for the ``checks``, and let PyTorch show its times once the machine is quiet."""
    timed = [problem.id for problem in problems if problem.timing_cases(run.request.seed)]
    if run.bench.pytorch is not None or not timed:
        wait(checks)
        return
    with pytorch.Process(run.request.seed, timed) as process:
        wait(checks)
        with run.bench.turn:
            run.bench.pytorch = process.result()


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


class _Judge:
    """Judges one problem; ``stop`` ends it from another thread."""

    def __init__(
        self,
        run: _Run,
        entry: ProblemPoints,
        problem: Problem,
        submission: Submission,
        builds: Mapping[str, FileBuild],
        machine: Machine,
        progress: Callable[[str], None],
    ) -> None:
        self._run = run
        self._request = run.request
        self._bench = run.bench
        self._entry = entry
        self._problem = problem
        self._submission = submission
        self._builds = builds
        self._notes: list[str] = []
        self._machine = machine
        self._progress = progress
        self._stopped = threading.Event()
        self._session: Session | TimedSession | None = None
        self._timed: tuple[Path, Memory] | None = None  # the library of a launcher that was timed
        self.id = entry.id

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
                self._request.assignment,
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
            build = self._usable(self._builds[file])
            result = _build_result(build)
            if build.library is None:
                raise _NotJudgedError(self._uncompiled(self._builds[file]), result)
            written = self._submission.contents(file)
            if reasons := violations(build.library, written, self._request.assignment.allowed_imports):
                message = f"{file} uses what a submission may not use"
                raise _NotJudgedError(message, result, Verdict.UNTRUSTED, reasons)
            found = [find_entry_point(build.library, one, file) for one in self._entry_points(file)]
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
        return (
            f"{file} did not compile, and without the functions that the errors are in, nothing of it can be "
            "graded"
        )

    def _entry_points(self, file: str) -> tuple[str, ...]:
        """What a library must export: the problem's own entry point, or all that a model may call."""
        if not self._problem.libraries:
            return (self._problem.entry_point,)
        return tuple(problem.entry_point for problem in load_all().values() if problem.file == file)

    def _launcher(self, libraries: Mapping[Path, tuple[str, ...]], built: BuildResult) -> Memory:
        """The memory that the launcher works on; from now on the problem is as the launcher takes it."""
        forced = None if self._request.memory == "auto" else Memory(self._request.memory)
        try:
            found = launcher(self._problem, self._submission.contents(self._problem.file), forced)
        except LauncherError as error:
            raise _NotJudgedError(str(error), built) from error
        ((symbol,),) = libraries.values()
        self._problem = replace(found.problem, entry_point=symbol)
        self._notes += found.notes
        return found.memory

    def _memory(self) -> Memory:
        """The memory that the launchers of a model's kernels work on: the host's if any of them copies."""
        if self._request.memory != "auto":
            return Memory(self._request.memory)
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
        cases = self._problem.cases(self._request.seed)
        with self._turn():
            judged = self._run_cases(machine.device, libraries, cases, memory)
        checked = (
            judged
            if machine.checker is machine.device
            else self._run_cases(machine.checker, libraries, cases, memory)
        )
        if self._problem.libraries:  # what a model launches is counted by the simulator alone
            judged = replace(judged, cases=tuple(map(_worse, judged.cases, checked.cases)))
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
            self._request.assignment.group_points,
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
        limits = self._request.assignment.limits

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
                self._bench.problems(self._request.seed)[self._problem.id],
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
        waivers = [one for one in self._request.assignment.waivers if one.problem == self._entry.id]
        return {
            case.name: Excuse(frozenset(waiver.findings), waiver.reason)
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
        if not self._problem.timing_cases(self._request.seed):
            return Measured(_no_speed(Verdict.NOT_MEASURED, target, NO_CASES))
        gpu, entry_points, baseline = machine.gpu, (self._problem.entry_point,), machine.baseline
        if self._problem.libraries:
            training = Training(
                problem=self._problem,
                open=lambda file: self._watch(gpu.open_model(file, libraries, memory)),
                model=self._submission.files[self._problem.file],
                unfused=template.folder() / self._problem.file,
                memory=memory,
                seed=self._request.seed,
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
            seed=self._request.seed,
            seconds=self._request.assignment.limits.run_seconds_gpu,
            progress=self._begin,
            look=condition.look,
        )
        measured = measure(timing, target, memory)
        self._timed = library, memory
        if self._bench.pytorch is None:
            return measured
        return replace(
            measured, performance=self._bench.pytorch.beside(self._problem.id, measured.performance)
        )

    def profiled(self, gpu: Gpu) -> list[str]:
        """What Nsight Compute sees of the largest case that was timed; nothing if none was.

        Raises:
            ProfileError: it cannot be used here; the text says why.
        """
        if self._timed is None:
            return []
        (library, memory), problem = self._timed, self._problem
        case = max(problem.timing_cases(self._request.seed), key=problem.minimal_bytes)
        self._begin(f"{self.id}: profiling {case.name}")
        given = arguments(problem, case, problem.inputs(case))
        with self._turn():
            return gpu.profiled(library, Call(problem.entry_point, given, profile.CALL_SECONDS, memory))

    def _begin(self, what: str) -> None:
        """Say what comes next, unless the run was interrupted."""
        if self._stopped.is_set():
            raise _InterruptedError
        self._progress(what)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """While the device works for this problem: a GPU for no other one."""
        alone = nullcontext() if self._machine.gpu is None else self._run.one_at_a_time
        with alone, self._bench.turn:
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


def _exit_code(problems: list[ProblemResult]) -> ExitCode:
    """A fault of the machine outweighs lost points: the run is to be repeated."""
    if any(problem.verdict is Verdict.INFRA_ERROR for problem in problems):
        return ExitCode.MACHINE_FAULT
    lost = any(problem.points.earned < problem.points.decided for problem in problems)
    return ExitCode.POINTS_LOST if lost else ExitCode.OK
