"""One grading run from a path to a record: collect, build, judge, score.

Whatever goes wrong ends in a valid record: a faulty submission with a score of 0 and the reason, a faulty
machine with undecided points, an interrupt with everything that was judged before it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations of what was built
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from grader import __version__
from grader.assignments.packing import version
from grader.devices import profile
from grader.judge.timing import others
from grader.languages.cache import Cache
from grader.languages.jobs import compile_limits
from grader.languages.known import files, languages
from grader.languages.language import FileBuild  # noqa: TC001 - pydantic reads the annotation
from grader.problems.module import ModuleProblem
from grader.problems.problem import KernelProblem
from grader.problems.threads import keep_to_one_thread
from grader.records.errors import MachineError
from grader.records.exit_codes import ExitCode
from grader.records.record import DeviceInfo, GraderInfo, ProblemResult, Record, SandboxInfo, SubmissionInfo
from grader.records.verdict import Verdict
from grader.run.answers import Answered, answered
from grader.run.bench import Bench
from grader.run.demands import reference_code
from grader.run.identity import judging_sha256
from grader.run.judging import ProblemJudge, without_cases
from grader.run.once import Once
from grader.run.preparation import Material
from grader.run.scoring import total
from grader.submissions.submission import collect
from grader.submissions.trees import EmptyError, SubmissionError, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from grader.assignments.assignment import Assignment
    from grader.assignments.rules import ProblemPoints
    from grader.devices.device import Memory
    from grader.devices.gpu import Gpu
    from grader.problems.module import Tolerance
    from grader.problems.problem import Problem
    from grader.run.bench import Machine
    from grader.run.options import GradingOptions
    from grader.run.preparation import Observe, Outcome
    from grader.submissions.submission import Submission

NOT_PROFILED = "not profiled: no GPU here"


@dataclass(frozen=True)
class GradingRequest:
    """What to grade and how, as the command line says it."""

    path: Path
    assignment: Assignment
    problems: tuple[str, ...]
    options: GradingOptions
    seed: int
    profile: bool = False  # whether to look at the kernels with Nsight Compute
    fast: bool = False  # whether to end a problem at the first pass of cases that shows something wrong
    failed: Mapping[str, Collection[str]] = field(default_factory=dict)  # what to begin with then, by problem
    cases: tuple[str, ...] = ()  # names of those to run alone; all without any
    files: tuple[str, ...] = ()  # of the submission, where others judge problems in some of them
    turn: int = 0  # which problem one that judges them in turn begins with
    observe: Observe | None = None  # is shown each call of a case


class _EndedError(Exception):
    """The grading ended before PyTorch was timed."""


@dataclass(frozen=True)
class Built:
    """The builds of a submission by file, made ahead of its grading."""

    sha256: str  # of the submission
    builds: Mapping[str, FileBuild]


@dataclass(frozen=True)
class Start:
    """When a grading began."""

    date: datetime = field(default_factory=lambda: datetime.now(UTC))
    clock: float = field(default_factory=time.monotonic)


@dataclass
class _Run:
    """The state of a grading run; it can make a valid record at any moment."""

    request: GradingRequest
    bench: Bench
    start: Start = field(default_factory=Start)
    submission: SubmissionInfo | None = None
    device: DeviceInfo | None = None
    sandbox: SandboxInfo | None = None
    languages: Mapping[str, str] = field(default_factory=dict)
    problems: dict[str, ProblemResult] = field(default_factory=dict)
    steps: dict[str, str] = field(default_factory=dict)  # what was done last, by problem

    def telling(self, progress: Callable[[str], None]) -> Callable[[str], None]:
        """``progress``, which also keeps what each problem is at."""

        def told(text: str) -> None:
            problem, _, step = text.partition(": ")
            if problem in self.request.problems and step:
                self.steps[problem] = step
            progress(text)

        return told

    def unjudged(self, name: str, reason: str) -> str:
        """Why a problem has no result: the reason, and what it was at."""
        if name not in self.steps:
            return reason
        return f"{reason}, at {self.steps[name]}. To grade this problem alone, add --problem {name}."

    def note(self, text: str) -> None:
        """Tell something of the submission as a whole."""
        assert self.submission is not None
        self.submission = self.submission.model_copy(update={"notes": [*self.submission.notes, text]})

    def record(self, code: ExitCode | None = None, error: str | None = None) -> Record:
        """The record of what was judged so far; problems without a result count as undecided."""
        request = self.request
        fallback = error or "not judged"
        problems = [
            self.problems.get(name)
            or without_cases(
                request.assignment,
                name,
                Verdict.INFRA_ERROR,
                self.unjudged(name, fallback),
                language=self.languages.get(name, "cuda"),
            )
            for name in request.problems
        ]
        return Record(
            grader=grader_info(request.assignment),
            assignment=request.assignment.id,
            submission=self.submission
            or SubmissionInfo(name=printable(request.path.name), sha256="", files=[]),
            seed=request.seed,
            started=self.start.date.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - self.start.clock, 3),
            device=self.device,
            sandbox=self.sandbox,
            score=total(problem.points for problem in problems),
            problems=problems,
            error=error,
            exit_code=_exit_code(problems) if code is None else code,
        )


def grade(
    request: GradingRequest,
    progress: Callable[[str], None] = lambda _text: None,
    bench: Bench | None = None,
    built: Built | None = None,
) -> Record:
    """Grade one submission; ``progress`` is told what happens, and what is ``built`` is not built again.

    A path that leads nowhere is no fault of the submission: it was moved, or is a link to what was.
    """
    run = _Run(request, bench or Bench())
    try:
        _grade(run, run.telling(progress), built)
    except EmptyError as error:
        return _faulty(run, Verdict.FAIL, str(error))
    except SubmissionError as error:
        return _faulty(run, Verdict.NOT_MEASURED, str(error))
    except MachineError as error:
        return run.record(ExitCode.MACHINE_FAULT, str(error))
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        return run.record(
            ExitCode.MACHINE_FAULT, f"the machine failed: {error.strerror}{place}. Mend it and grade again."
        )
    except KeyboardInterrupt:
        return run.record(ExitCode.INTERRUPTED, "interrupted")
    return run.record()


def put_together(
    request: GradingRequest, parts: Sequence[Record], start: Start, *, interrupted: bool
) -> Record:
    """The record of a grading that was made in ``parts``, each of which has some of its problems.

    Problems that no part has were not reached by a grading that was ``interrupted``.
    """
    run = _Run(request, Bench(), start)
    for part in parts:
        run.sandbox, run.device = part.sandbox, part.device
        run.problems |= {problem.id: problem for problem in part.problems}
    if parts:
        notes = dict.fromkeys(note for part in parts for note in part.submission.notes)
        run.submission = parts[0].submission.model_copy(update={"notes": list(notes)})
    if interrupted:
        return run.record(ExitCode.INTERRUPTED, "interrupted")
    fault = next((part for part in parts if part.error), None)
    return run.record() if fault is None else run.record(ExitCode(fault.exit_code), fault.error)


def updated(before: Record, after: Record) -> Record:
    """The later record with the problems of the earlier one that were not graded again."""
    new = {problem.id: problem for problem in after.problems}
    problems = [new.get(problem.id, problem) for problem in before.problems]
    code = after.exit_code if after.error or after.submission.error else _exit_code(problems)
    score = total(problem.points for problem in problems)
    return after.model_copy(update={"problems": problems, "score": score, "exit_code": code})


def build_ahead(request: GradingRequest, bench: Bench) -> Built | None:
    """Build what ``grade`` will need; None if the build cache cannot keep it.

    Raises:
        SubmissionError, MachineError, OSError: grading meets the same and tells why.
    """
    wanted = _wanted(request, request.assignment.problems)
    with collect(request.path, _files(request.assignment, wanted)) as submission:
        limits = request.assignment.rules.limits
        machine, cache = bench.machine(request.options.device, request.options.sandbox, limits), Cache()
        builds = _build(_answers(request, machine, cache, wanted, submission), submission)
        return None if cache.warning else Built(submission.sha256, builds)


def graded_files(assignment: Assignment, problems: Collection[str] = ()) -> tuple[str, ...]:
    """The names of the files that these problems of the assignment are in, or without any all of them."""
    known = assignment.problems
    graded = [
        (entry, known[entry.id])
        for entry in assignment.rules.problems
        if entry.graded and entry.id in known and (not problems or entry.id in problems)
    ]
    return tuple(_files(assignment, graded))


def grader_info(assignment: Assignment) -> GraderInfo:
    """The version of the grader and of the assignment."""
    return GraderInfo(version=__version__, config_sha256=assignment.sha256, sha256=judging_sha256())


def _faulty(run: _Run, verdict: Verdict, error: str) -> Record:
    """Nothing of the submission can be graded, for this reason: ``verdict`` on each of its problems."""
    assignment = run.request.assignment
    run.submission = SubmissionInfo(name=printable(run.request.path.name), sha256="", files=[], error=error)
    for name in run.request.problems:
        judged = verdict if assignment.rules.problem(name).graded else Verdict.NOT_MEASURED
        run.problems[name] = without_cases(assignment, name, judged, "")
    return run.record(ExitCode.POINTS_LOST)


def _wanted(request: GradingRequest, known: Mapping[str, Problem]) -> list[tuple[ProblemPoints, Problem]]:
    entries = (request.assignment.rules.problem(name) for name in request.problems)
    return [(entry, known[entry.id]) for entry in entries if entry.graded and entry.id in known]


def _grade(run: _Run, progress: Callable[[str], None], built: Built | None) -> None:
    request, assignment = run.request, run.request.assignment
    wanted = _wanted(request, run.bench.problems(assignment, request.seed))
    for name in set(request.problems) - {entry.id for entry, _ in wanted}:
        message = "not part of this release's grading"
        run.problems[name] = without_cases(assignment, name, Verdict.NOT_MEASURED, message)
    progress("collecting")
    with collect(request.path, request.files or _files(assignment, wanted)) as submission:
        run.submission = SubmissionInfo(
            name=submission.name,
            sha256=submission.sha256,
            files=sorted(submission.files),
            notes=list(submission.notes),
        )
        if submission.version and submission.version != version(assignment):
            run.note(
                f"its folder was made for another version of {assignment.id}, {submission.version}, and this "
                f"is {version(assignment)}: the student may have seen other results"
            )
        for entry, problem in wanted:
            if isinstance(problem, ModuleProblem) and problem.tolerance:
                run.note(_tolerated(entry, problem.tolerance))
        progress("looking at this machine")
        machine = run.bench.machine(request.options.device, request.options.sandbox, assignment.rules.limits)
        run.sandbox, run.device = machine.sandbox_info, machine.device_info
        if machine.gpu is not None:
            wanted = [(entry.on_gpu(machine.device_info.name), problem) for entry, problem in wanted]
        cache = Cache()
        answers = _answers(request, machine, cache, wanted, submission)
        run.languages = {one.entry.id: one.language.name for one in answers}
        progress(
            "compiling " + ", ".join(sorted({file for one in answers for file in _sources(one, submission)}))
        )
        if built is not None and built.sha256 == submission.sha256:
            builds = built.builds
        else:
            builds = _build(answers, submission)
            if cache.warning:
                run.note(cache.warning)
        code: dict[str, int] = {}
        for those in _by_language(answers):
            asked = [(one.entry, one.problem) for one in those]
            code |= reference_code(assignment.reference, asked, those[0].language)
        trials: Once[Mapping[Memory, Outcome]] = Once()  # of which a model has those of its kernels
        materials = [
            Material(
                assignment=assignment,
                seed=request.seed,
                memory=request.options.memory,
                submission=submission,
                language=one.language,
                note=one.note,
                builds=builds,
                reference_code=code,
                machine=machine,
                bench=run.bench,
                progress=progress,
                fast=request.fast,
                failed=request.failed,
                cases=request.cases,
                precise=request.options.precise,
                observe=request.observe,
                trials=trials,
            )
            for one in answers
        ]
        _judge_all(run, machine, answers, materials)


def _tolerated(entry: ProblemPoints, tolerance: Tolerance) -> str:
    """A sentence on an allowed error that is not derived."""
    return (
        f"{entry.title}: the tolerance of the original counts, rtol {tolerance.rtol:g} and atol "
        f"{tolerance.atol:g}, and no derived bound: {tolerance.why}"
    )


def _files(assignment: Assignment, wanted: Iterable[tuple[ProblemPoints, Problem]]) -> list[str]:
    allowed = assignment.rules.languages_of
    return sorted({file for entry, problem in wanted for file in files(problem, allowed(entry.id))})


def _sources(answer: Answered, submission: Submission) -> list[str]:
    return sorted(submission.files.keys() & answer.problem.libraries)


def _answers(
    request: GradingRequest,
    machine: Machine,
    cache: Cache,
    wanted: Iterable[tuple[ProblemPoints, Problem]],
    submission: Submission,
) -> list[Answered]:
    """The problems, each in its language with the tools and limits that it is built by."""
    rules = request.assignment.rules
    compiling = compile_limits(rules.limits.compile_seconds, int(rules.limits.compile_memory_gib * 2**30))
    known = languages(
        rules.every_language,
        machine.toolchain,
        machine.sandbox,
        compiling,
        cache,
        (machine.device, machine.checker),
        all_configs=request.options.all_configs,
    )
    tools = {language.name: language for language in known}
    return [
        answered(
            entry,
            problem,
            submission,
            [tools[name] for name in rules.languages_of(entry.id)],
            request.assignment,
        )
        for entry, problem in wanted
    ]


def _by_language(answers: Iterable[Answered]) -> Collection[list[Answered]]:
    """The problems that are answered in the same language together."""
    found: dict[str, list[Answered]] = {}
    for one in answers:
        found.setdefault(one.language.name, []).append(one)
    return found.values()


def _build(answers: Iterable[Answered], submission: Submission) -> Mapping[str, FileBuild]:
    """Build every file that a problem is graded from, those of a language side by side."""
    builds: dict[str, FileBuild] = {}
    for those in _by_language(answers):
        names = {file for one in those for file in _sources(one, submission)}
        kernels = [one.problem for one in those if isinstance(one.problem, KernelProblem)]
        entry_points = {
            name: [entry_point for one in kernels if one.file == name for entry_point in one.entry_points]
            for name in sorted(names)
        }
        sources = {name: _asserted(submission.contents(name), name, kernels) for name in entry_points}
        builds |= those[0].language.build(sources, entry_points)
    return builds


def _asserted(contents: Mapping[str, bytes], file: str, kernels: Iterable[KernelProblem]) -> dict[str, bytes]:
    """``contents`` of ``file`` with what the compiler checks of the structs that its launchers take."""
    structs = {
        parameter.struct for problem in kernels if problem.file == file for parameter in problem.structs
    }
    if not structs:
        return dict(contents)
    text = '\n#include <type_traits>\n#include <utility>\n#line 1 "the assignment"'
    text += "".join(f"\n{struct.assertions}" for struct in sorted(structs, key=lambda struct: struct.name))
    return {**contents, file: contents[file] + text.encode() + b"\n"}


def _judge_all(run: _Run, machine: Machine, answers: list[Answered], materials: list[Material]) -> None:
    """Judge the problems side by side, and once all are checked time them on a GPU; or one after the other.

    A grading that judges one at a time has others beside it: one of them always has something to time.
    """
    gpu = machine.gpu
    workers = max(1, min(len(answers), run.bench.problems_at_once))
    judges = [
        ProblemJudge(material, one.entry, one.problem)
        for material, one in zip(materials, answers, strict=True)
    ]
    # Each is one thread also within PyTorch, whose own threads would spin while they wait for a core.
    begun: dict[str, Future[Callable[[], ProblemResult]]] = {}
    with ThreadPoolExecutor(workers, initializer=keep_to_one_thread) as pool:
        try:
            # What takes longest begins first: at the end no processor waits for it.
            first = sorted(judges, key=lambda judge: judge.kind.rank)
            with _pytorch_timed(run, gpu, [one.problem for one in answers]):
                if workers == 1:
                    turn = run.request.turn % max(1, len(first))
                    _judge_in_turn(run, [*first[turn:], *first[:turn]], pool, begun)
                else:
                    begun |= {judge.id: pool.submit(judge.check) for judge in first}
                    _measure_all(run, judges, [begun[judge.id] for judge in judges])
            for index, judge in enumerate(judges):
                if judge.machine_failed:  # perhaps because of the others, which are done now
                    judge.material.progress(f"{judge.id}: the machine failed, trying again")
                    one = answers[index]
                    judges[index] = again = ProblemJudge(judge.material, one.entry, one.problem)
                    run.problems[again.id] = pool.submit(pool.submit(again.check).result()).result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for judge in judges:
                judge.stop()
            _keep(run, judges, begun)
            raise
    if run.request.profile:
        _profile(run, judges, gpu)


def _keep(
    run: _Run, judges: Iterable[ProblemJudge], begun: Mapping[str, Future[Callable[[], ProblemResult]]]
) -> None:
    """Keep what was decided of problems that were stopped; what was not run of them is undecided."""
    for judge in judges:
        check = begun.get(judge.id)
        if judge.id in run.problems or check is None or check.cancelled() or check.exception() is not None:
            continue
        if not judge.machine_failed:
            run.problems[judge.id] = check.result()()


def _judge_in_turn(
    run: _Run,
    judges: Iterable[ProblemJudge],
    pool: Executor,
    begun: dict[str, Future[Callable[[], ProblemResult]]],
) -> None:
    """Get the results of those that the machine did not fail, each before the next one is checked."""
    for judge in judges:
        begun[judge.id] = pool.submit(judge.check)
        result = begun[judge.id].result()
        if not judge.machine_failed:
            run.problems[judge.id] = pool.submit(result).result()


def _measure_all(
    run: _Run, judges: Iterable[ProblemJudge], checks: Iterable[Future[Callable[[], ProblemResult]]]
) -> None:
    """Get the results of those that the machine did not fail, once all are checked.

    Several at a time unless they are to be precise: while one has the GPU, the inputs of the other are drawn
    and its outputs compared. That keeps the GPU busy, which makes a kernel of two microseconds shorter by up
    to a sixth, and PyTorch's in the same way. What is checked meanwhile in this process would keep the GPU
    waiting, as both take turns with Python's interpreter.
    """

    def measured(problem: str, result: Callable[[], ProblemResult]) -> None:
        run.problems[problem] = result()

    at_once = 1 if run.request.options.precise else run.bench.measured_at_once
    checked = [(judge, check.result()) for judge, check in zip(judges, checks, strict=True)]
    with ThreadPoolExecutor(at_once, initializer=keep_to_one_thread) as pool:
        measuring = [
            pool.submit(measured, judge.id, result) for judge, result in checked if not judge.machine_failed
        ]
        try:
            for measurement in measuring:
                measurement.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for judge, _ in checked:
                judge.stop()
            raise


def _profile(run: _Run, judges: Iterable[ProblemJudge], gpu: Gpu | None) -> None:
    """Look at the kernels that were timed, now that nothing that is decided or timed can depend on it."""
    if gpu is None:
        run.note(NOT_PROFILED)
        return
    try:
        for judge in judges:
            lines = judge.profiled(gpu)
            result = run.problems[judge.id]
            info = [*result.performance.info, *lines]
            performance = result.performance.model_copy(update={"info": info})
            run.problems[judge.id] = result.model_copy(update={"performance": performance})
    except profile.ProfileError as error:
        run.note(f"not profiled: {error}")


@contextmanager
def _pytorch_timed(run: _Run, gpu: Gpu | None, problems: Iterable[Problem]) -> Iterator[None]:
    """Let PyTorch show its times at some moment of this, and put them beside those of the submission."""
    timed = [
        problem.id
        for problem in problems
        if isinstance(problem, KernelProblem) and problem.timing_cases(run.request.seed)
    ]
    if gpu is None or not timed:
        yield
        return
    ended = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        timing = pool.submit(_time_pytorch, run, gpu, timed, ended)
        try:
            yield
            timing.result()
        finally:
            ended.set()
    if (others := run.bench.pytorch) is not None:
        for name in timed:
            if (problem := run.problems.get(name)) is not None:
                performance = others.beside(name, problem.performance)
                run.problems[name] = problem.model_copy(update={"performance": performance})


def _time_pytorch(run: _Run, gpu: Gpu, timed: Sequence[str], ended: threading.Event) -> None:
    """Let PyTorch show its times on the GPU, once for all gradings that share the bench."""

    def waiting() -> None:
        if ended.is_set():
            raise _EndedError

    bench = run.bench
    with bench.finding_pytorch(gpu.identity, waiting):
        if bench.find_pytorch(gpu.identity):
            return
        with others.Process(run.request.assignment.folder, run.request.seed, timed) as process:
            process.wait_until_ready()
            with gpu.sharing.alone(waiting):
                bench.keep_pytorch(gpu.identity, process.result())


def _exit_code(problems: list[ProblemResult]) -> ExitCode:
    """A fault of the machine outweighs lost points: the run is to be repeated."""
    if any(problem.verdict is Verdict.INFRA_ERROR for problem in problems):
        return ExitCode.MACHINE_FAULT
    lost = any(problem.points.earned < problem.points.decided for problem in problems)
    return ExitCode.POINTS_LOST if lost else ExitCode.OK
