"""One problem of a submission, from its builds to its result: prepare, run cases, check, measure, score."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, get_args

from grader.devices import profile
from grader.devices.device import Call
from grader.devices.sharing import WAITING
from grader.judge.correctness.calls import arguments
from grader.judge.correctness.cases import Excuse, Judged, WorkedOutAhead, judge, overrun_beside
from grader.judge.correctness.exchange import Observed
from grader.judge.correctness.remembered import remembered
from grader.judge.coverage.search import FOLLOWING
from grader.judge.timing.measure import Measured
from grader.problems.grid import beyond_simulator
from grader.problems.problem import KernelProblem, ModelProblem
from grader.problems.program import ProgramProblem
from grader.problems.threads import keep_to_one_thread
from grader.records.diagnosis import Diagnosis
from grader.records.findings import Line, Severity, Tool
from grader.records.gaps import GapKind
from grader.records.mangled import demangled
from grader.records.record import (
    BuildResult,
    CheckResult,
    CorrectnessResult,
    DemandResult,
    FindingRecord,
    HintRecord,
    PerformanceResult,
    PlaceRecord,
    ProblemResult,
    TrustResult,
)
from grader.records.verdict import Ending, Verdict
from grader.run import demands, kernel
from grader.run.excerpt import excerpt, library_of, line_of, place_of, place_of_call
from grader.run.following import Following
from grader.run.kept import Kept
from grader.run.kinds import kind_of
from grader.run.passes import INTERRUPTED, completed, joined, judged_by_name, judged_in_passes
from grader.run.preparation import NotJudgedError
from grader.run.scoring import memory_verdict, score_problem, score_without_cases
from grader.run.typical import typical
from grader.run.unset import unset_variables
from grader.run.working_out import worked_out_beside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from grader.assignments.assignment import Assignment
    from grader.assignments.rules import ProblemPoints, Rules
    from grader.devices.device import Device, Session
    from grader.devices.gpu import Gpu
    from grader.devices.timed import TimedSession
    from grader.judge.correctness.counted import Counted
    from grader.problems.problem import Case, Problem
    from grader.records.findings import Finding
    from grader.records.record import (
        CaseResult,
        GapRecord,
        GroupResult,
        OutputResult,
        StoreRecord,
        UnreachedRecord,
    )
    from grader.run.preparation import Material
    from grader.run.prepared import AnySession, Prepared

NO_GPU = "not measured: no GPU here. Grade on a GPU machine, or leave it to your instructor."
NO_CASES = "not measured: this problem has no cases to time."
NOT_RIGHT = "not measured: a kernel earns points for speed once all of its cases are right."
PRINTED_CHARACTERS = 4000
MOST_SESSIONS = 6  # that are open at a time: of both devices, and two of each of two processes that train
AHEAD = 2  # large cases are worked out while one runs, each in a thread: at most 400 MB and their float64
SPARE_PROCESSORS = 8  # with fewer, what is begun ahead would only take them from the cases
STOPPED = "not measured: the grading was interrupted"
_WARNING = "it is only a warning"


def without_cases(
    assignment: Assignment,
    problem_id: str,
    verdict: Verdict,
    message: str,
    build: BuildResult | None = None,
    reasons: tuple[str, ...] = (),
    language: str = "cuda",
) -> ProblemResult:
    """The result of a problem of which no case ran."""
    entry = assignment.rules.problem(problem_id).in_language(language)
    problem = assignment.problems.get(problem_id)
    groups = problem.groups if problem else ()
    score = score_without_cases(entry, assignment.rules.group_points, groups, verdict)
    return ProblemResult(
        id=entry.id,
        title=entry.title,
        verdict=score.verdict,
        points=score.points,
        message=message,
        language=language,
        build=build,
        correctness=CorrectnessResult(verdict=score.correctness, groups=list(score.groups)),
        performance=_no_speed(entry, Verdict.NOT_MEASURED),
        trust=TrustResult(verdict=Verdict.UNTRUSTED if reasons else Verdict.PASS, reasons=list(reasons)),
    )


def excuses(rules: Rules, problem_id: str, cases: Iterable[Case]) -> dict[str, Excuse]:
    """The waivers of an assignment by the names of the cases that they cover."""
    waivers = {case.name: rules.waiver(problem_id, case.sizes, case.distribution) for case in cases}
    return {
        name: Excuse(frozenset(waiver.findings), waiver.reason, waiver.numbers)
        for name, waiver in waivers.items()
        if waiver is not None
    }


def _hidden(rules: Rules, groups: Iterable[GroupResult]) -> list[GroupResult]:
    """The groups, with the date for those that students do not see before it."""
    hidden = rules.hidden
    return [
        group.model_copy(update={"hidden_until": hidden.until})
        if hidden is not None and group.name in hidden.groups
        else group
        for group in groups
    ]


class _InterruptedError(Exception):
    """Raised in trials and measurements once the run was interrupted."""


class ProblemJudge:
    """Judges one problem; ``stop`` ends it from another thread, and what was decided before stays."""

    def __init__(self, material: Material, entry: ProblemPoints, problem: Problem) -> None:
        """Prepare nothing yet."""
        self.material = material
        self._entry = entry
        self._problem = problem
        self.kind = kind_of(problem)
        self.stopped = threading.Event()
        self._sessions: deque[Session | TimedSession] = deque(maxlen=MOST_SESSIONS)
        self._timed: kernel.PreparedKernel | None = None
        self._waited = False
        self.id = entry.id
        self.machine_failed = False  # in the middle of the cases, or of the trials before them

    def stop(self) -> None:
        """End the sessions that run, and judge no further case."""
        self.stopped.set()
        for session in tuple(self._sessions):
            session.close()

    def check(self) -> Callable[[], ProblemResult]:
        """Judge whether the problem is solved; what comes back measures the speed and gives the result."""
        try:
            answer = self.kind.prepare(self, self._entry, self._problem)
        except NotJudgedError as error:
            self.machine_failed = error.verdict is Verdict.INFRA_ERROR or self.stopped.is_set()
            return partial(
                without_cases,
                self.material.assignment,
                self.id,
                error.verdict,
                str(error),
                error.build,
                error.reasons,
                self.material.language.name,
            )
        machine = self.material.machine
        following = Following(answer, self._sources(answer.problem), self.material.seed, self._judges)
        if machine.checker is machine.device:
            with closing(Kept(lambda: self._watched(answer.open(machine.device)))) as kept:
                judged = checked = self._run_cases(
                    machine.device,
                    answer,
                    answer.problem,
                    following,
                    kept=kept if self.material.fast else None,  # which is in parts
                )
        else:
            # Side by side: who comes first to a case works out its inputs and oracle for both.
            with (
                self._remembering(answer.problem) as problem,
                closing(Kept(lambda: self._watched(answer.open(machine.device)))) as kept,
            ):
                with ThreadPoolExecutor(1, initializer=keep_to_one_thread) as beside:
                    running = beside.submit(self._run_on_gpu, answer, problem, kept)
                    checked = self._run_cases(machine.checker, answer, problem, following)
                    judged, beyond = running.result()
                if following.cases and not judged.machine_failed:
                    further = self._run_cases(
                        machine.device, answer, problem, cases=following.cases, kept=kept
                    )
                    judged = joined(judged, further)
            judged = replace(judged, cases=answer.combined(judged, checked, machine.device.name))
            if self.stopped.is_set():
                judged = replace(judged, cases=_ran_on_both(judged.cases, checked.cases))
            if _right(judged):
                judged = joined(judged, beyond)
            checked = overrun_beside(checked, judged)
        self.machine_failed = judged.machine_failed or checked.machine_failed
        if self.machine_failed:
            answer.forget()
        return partial(self._result, answer, judged, checked, following.unreached)

    @contextmanager
    def _remembering(self, problem: Problem) -> Iterator[Problem]:
        """``problem``, which remembers; processes work out what is right for the cases of a model meanwhile.

        That takes as long as they do. It begins while the runners start, and goes on while they run.
        """
        machine, spare = self.material.machine, self.material.bench.problems_at_once >= SPARE_PROCESSORS
        if not isinstance(problem, ModelProblem) or not spare:
            yield remembered(problem)
            return
        schedules = max(machine.device.schedules, machine.checker.schedules, key=len)
        with worked_out_beside(self.material.assignment, problem, self.material.seed, schedules) as sharing:
            yield sharing

    def _judges(self, sizes: Mapping[str, int], distribution: str) -> bool:
        """Whether a case with these inputs can cost points: no waiver excludes it, nor its numbers."""
        waiver = self.material.assignment.rules.waiver(self.id, sizes, distribution)
        return waiver is None or not (waiver.excludes or waiver.numbers)

    def _sources(self, problem: Problem) -> dict[str, bytes]:
        """The files that the problem is compiled from, and what they include, by name."""
        submission, files = self.material.submission, tuple(problem.sources)
        if isinstance(problem, ProgramProblem):
            files += tuple(problem.matching(submission.matched))
        return {name: text for file in files for name, text in submission.contents(file).items()}

    def _result(
        self, answer: Prepared, judged: Judged, checked: Judged, unreached: list[UnreachedRecord]
    ) -> ProblemResult:
        problem, entry, sources = answer.problem, answer.entry, self._sources(answer.problem)
        measured = self._measured(answer, judged)
        reasons = [*judged.untrusted, *measured.reasons]
        asked = self._demands(answer, measured.performance, checked.counted)
        score = score_problem(
            entry,
            self.material.assignment.rules.group_points,
            _groups(problem, judged.cases),
            judged.cases,
            memory_verdict(
                entry, (finding.kind for finding in checked.findings if finding.counts), checked.cases
            ),
            measured.performance,
            asked,
        )
        return ProblemResult(
            id=entry.id,
            title=entry.title,
            verdict=score.verdict,
            points=score.points,
            language=self.material.language.name,
            memory=answer.memory.value,
            notes=list(answer.notes),
            build=answer.build,
            correctness=CorrectnessResult(
                verdict=score.correctness,
                summary=judged.summary,
                groups=_hidden(self.material.assignment.rules, score.groups),
                cases=_with_lines(
                    _with_launcher(_with_unset(judged.cases, problem, sources), problem, sources), sources
                ),
                unreached=unreached,
            ),
            checks=[_check(tool, checked, sources) for tool in get_args(Tool)],
            performance=measured.performance,
            demands=asked,
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
        answer: Prepared,
        problem: Problem,
        following: Following | None = None,
        cases: Sequence[Case] = (),
        kept: Kept | None = None,
        ahead: WorkedOutAhead | None = None,
    ) -> Judged:
        """Judge ``cases``, or the problem's own; ``following`` looks for more, ``kept`` has a session.

        ``ahead`` is told of each case that begins.
        """
        limits = self.material.assignment.rules.limits
        cases = tuple(cases) or problem.cases(self.material.seed)
        cases = tuple(case for case in cases if case.on in {"", device.kind})
        numbers = {case.name: number for number, case in enumerate(cases, 1)}
        like_timed = typical(cases, problem.timing_cases(self.material.seed))
        exchange, observe = self.kind.exchange, self.material.observe
        if observe is not None:
            exchange = Observed(exchange, partial(observe, problem, answer.memory))

        def begin(case: Case) -> None:
            if ahead is not None:
                ahead.begin(case)
            place = f"{numbers[case.name]} of {len(cases)}" if case.name in numbers else ""
            which = place or "that the code asks for"
            self.material.progress(f"{self.id}: case {which} on {device.kind}, {case.name}")

        def judged_in(part: tuple[Case, ...], open_session: Callable[[], Session]) -> Judged:
            return judge(
                problem,
                part,
                open_session,
                device.schedules,
                memory=answer.memory,
                seconds=limits.run_seconds_gpu if device.kind == "gpu" else limits.run_seconds_sim,
                begin=begin,
                excuses=excuses(self.material.assignment.rules, self.id, part),
                lacks=answer.lacks,
                hinted=lambda case: case.name in like_timed,
                observe=following.observe if following else lambda _case, _answer: None,
                exchange=exchange,
                ended=self.stopped.is_set,
            )

        def judged(part: tuple[Case, ...]) -> Judged:
            if kept is not None:
                return kept.judged(partial(judged_in, part))
            return judged_in(part, lambda: self._watched(answer.open(device)))

        def all_judged(part: tuple[Case, ...]) -> Judged:
            return completed(judged(part), part, INTERRUPTED)

        if self.material.cases:
            return judged_by_name(cases, self.material.cases, all_judged)
        if self.material.fast:
            whole = judged_in_passes(cases, self.material.failed.get(self.id, ()), judged)
        else:
            whole = all_judged(cases)
        return following.follow(whole, all_judged) if following else whole

    def _run_on_gpu(self, answer: Prepared, problem: Problem, kept: Kept) -> tuple[Judged, Judged]:
        """What the device shows of the cases, and if they are right, of those at the ends of ranges.

        The latter count only if the simulator agrees, which runs the cases meanwhile and takes longer.
        """
        machine, timed = self.material.machine, problem.timing_cases(self.material.seed)
        if machine.gpu is not None and timed and self.material.bench.problems_at_once >= SPARE_PROCESSORS:
            answer.foresee(machine.gpu, self)
        large = _large_cases(problem, self.material.seed) if machine.gpu is not None else ()
        count = AHEAD if self.material.bench.problems_at_once >= SPARE_PROCESSORS else 1
        with closing(WorkedOutAhead(problem, large, count)) as ahead:
            judged = self._run_cases(machine.device, answer, problem, kept=kept)
            goes_on = machine.gpu is not None and _right(judged)
            beyond = self._beyond_simulator(answer, problem, kept, large, ahead) if goes_on else Judged(())
        return judged, beyond

    def _beyond_simulator(
        self, answer: Prepared, problem: Problem, kept: Kept, cases: tuple[Case, ...], ahead: WorkedOutAhead
    ) -> Judged:
        """Judge sizes that are too large for the simulator; one that takes too long costs speed alone."""
        if not cases:
            return Judged(())
        judged = self._run_cases(
            self.material.machine.device, answer, problem, cases=cases, kept=kept, ahead=ahead
        )
        ended = [case for case in judged.cases if case.ending not in {Ending.LIMIT, Ending.NOT_RUN}]
        return replace(judged, cases=tuple(ended))

    def _measured(self, answer: Prepared, judged: Judged) -> Measured:
        """Measure the speed, unless the numbers are wrong."""
        machine, entry = self.material.machine, answer.entry
        if machine.gpu is None:
            return Measured(_no_speed(entry, Verdict.NOT_MEASURED, NO_GPU))
        if self.stopped.is_set():
            return self._unmeasured(answer)
        if not _right(judged):
            answer.forget()
            return Measured(_no_speed(entry, Verdict.FAIL, NOT_RIGHT))
        if not answer.problem.timing_cases(self.material.seed):
            return Measured(_no_speed(entry, Verdict.NOT_MEASURED, NO_CASES))
        measured = self._timed_on(machine.gpu, answer)
        self._timed = answer if isinstance(answer, kernel.PreparedKernel) else None
        return measured

    def _timed_on(self, gpu: Gpu, answer: Prepared) -> Measured:
        """What the clock of ``gpu`` says; nothing of what was interrupted."""
        try:
            measured = answer.measured(gpu, self.material.machine.baseline, self)
        except _InterruptedError:
            return self._unmeasured(answer)
        return self._unmeasured(answer) if self.stopped.is_set() else measured

    def _unmeasured(self, answer: Prepared) -> Measured:
        """The speed of what was interrupted: a session that was closed says nothing of the submission."""
        answer.forget()
        return Measured(_no_speed(answer.entry, Verdict.NOT_MEASURED, STOPPED))

    def _demands(
        self, answer: Prepared, performance: PerformanceResult, counted: Counted
    ) -> list[DemandResult]:
        """What was found for what else the assignment asks for."""
        if not answer.entry.demands:
            return []
        own, reference = answer.code_bytes(self)
        facts = demands.Facts(own, reference, performance, counted, self._sources(answer.problem))
        return [demands.judged(demand, facts) for demand in answer.entry.demands]

    def profiled(self, gpu: Gpu) -> list[str]:
        """What Nsight Compute sees of the largest case that was timed; nothing if none was.

        Raises:
            ProfileError: it cannot be used here; the text says why.
        """
        if self._timed is None:
            return []
        problem = self._timed.problem
        case = max(problem.timing_cases(self.material.seed), key=problem.minimal_bytes)
        self.begin(f"{self.id}: profiling {case.name}")
        launcher = problem.launcher(case)
        given = arguments(launcher, case, problem.inputs(case))
        call = Call(launcher.entry_point, given, profile.CALL_SECONDS, self._timed.memory)
        with gpu.sharing.alone(self.waiting):
            return self._timed.language.profiled(gpu, self._timed.artefact, call)

    def begin(self, what: str) -> None:
        """Say what comes next, unless the run was interrupted."""
        if self.stopped.is_set():
            raise _InterruptedError
        self.material.progress(what)

    def waiting(self) -> None:
        """Say that the GPU is waited for, once, unless the run was interrupted."""
        if self.stopped.is_set():
            raise _InterruptedError
        if not self._waited:
            self._waited = True
            self.material.progress(f"{self.id}: {WAITING}")

    def watch(self, session: AnySession) -> AnySession:
        """``session``, which ``stop`` will close; raises where the run was interrupted."""
        self._watched(session)
        if self.stopped.is_set():
            raise _InterruptedError
        return session

    def _watched(self, session: AnySession) -> AnySession:
        """``session``, which ``stop`` will close, or has just closed."""
        self._sessions.append(session)
        if self.stopped.is_set():  # while it opened, so that nobody closed it
            session.close()
        return session


def _groups(problem: Problem, cases: Iterable[CaseResult]) -> tuple[str, ...]:
    """The case groups that are graded: that of cases which follow the code only where one of them fails."""
    wrong = {case.group for case in cases if case.verdict is not Verdict.PASS}
    return (*problem.groups, *(group for group in FOLLOWING if group in wrong))


def _ran_on_both(cases: Sequence[CaseResult], checked: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """The cases of an interrupted grading, of which those are undecided that the simulator has not run."""
    return tuple(
        other if other.ending is Ending.NOT_RUN and other.message == INTERRUPTED else case
        for case, other in zip(cases, checked, strict=True)
    )


def _large_cases(problem: Problem, seed: int) -> tuple[Case, ...]:
    """The cases that are too large for the simulator."""
    space = problem.space if isinstance(problem, KernelProblem) else None
    return () if space is None else beyond_simulator(space, seed)


def _right(judged: Judged) -> bool:
    return all(case.verdict is Verdict.PASS for case in judged.cases if not case.waived)


def _with_unset(
    cases: Sequence[CaseResult], problem: Problem, sources: Mapping[str, bytes]
) -> Sequence[CaseResult]:
    """The cases, of which those with wrong numbers name a variable that the launcher's code never sets."""
    if not isinstance(problem, KernelProblem):
        return cases
    entry_points = [demangled(name).rpartition("::")[2] for name in problem.entry_points]
    variables = [each for name in entry_points for each in unset_variables(sources, name)]
    if not variables:
        return cases
    first = variables[0]
    note = Diagnosis(
        "unset_variable",
        f"the variable {first.name} is added to before anything has set it: it begins with any number",
        "Set it where it is declared.",
        file=first.file,
        line=first.line,
    )
    return [
        case.model_copy(update={"diagnoses": [note, *case.diagnoses]})
        if case.verdict is Verdict.FAIL and any(output.bad for output in case.outputs)
        else case
        for case in cases
    ]


def _with_launcher(
    cases: Sequence[CaseResult], problem: Problem, sources: Mapping[str, bytes]
) -> Sequence[CaseResult]:
    """The cases, of which those with elements that no thread has written name the line of the launcher.

    Each has the lines around the one that its first diagnosis with a line blames.
    """
    if not isinstance(problem, KernelProblem):
        return cases
    file, line = place_of_call(demangled(problem.entry_points[0]).rpartition("::")[2], sources)

    def launched(case: CaseResult) -> CaseResult:
        diagnoses = [
            replace(each, file=file, line=line) if each.unwritten else each for each in case.diagnoses
        ]
        blamed = next((each for each in diagnoses if each.line), None)
        if blamed is None:
            return case
        lines = excerpt(sources, blamed.file, blamed.line)
        return case.model_copy(update={"diagnoses": diagnoses, "source": lines})

    return [launched(case) for case in cases]


def _with_lines(cases: Sequence[CaseResult], sources: Mapping[str, bytes]) -> list[CaseResult]:
    """The cases with the lines of what the simulator lacks.

    The first whose message begins with a place has the lines around it. Stores have theirs.
    """
    cases = [
        case.model_copy(
            update={
                "gaps": [_with_line(gap, sources) for gap in case.gaps],
                "outputs": [_with_stores(output, sources) for output in case.outputs],
            }
        )
        for case in cases
    ]
    for index, case in enumerate(cases):
        if case.line:
            lines = excerpt(sources, case.file, case.line)
            return [*cases[:index], case.model_copy(update={"source": lines}), *cases[index + 1 :]]
    return cases


def _with_line(gap: GapRecord, sources: Mapping[str, bytes]) -> GapRecord:
    """What the simulator lacks, with what the sources hold there; of a call its name alone is known."""
    file, number = gap.file, gap.line
    if gap.kind is GapKind.CALL:
        file, number = place_of_call(gap.subject, sources)
    lines = excerpt(sources, file, number)
    return gap.model_copy(update={"file": file, "line": number, "source": lines})


def _with_stores(output: OutputResult, sources: Mapping[str, bytes]) -> OutputResult:
    """An output with the lines of what has stored its wrong elements."""
    elements = [
        element.model_copy(update={"last_store": _with_text(element.last_store, sources)})
        if element.last_store is not None
        else element
        for element in output.first_bad
    ]
    return output.model_copy(update={"first_bad": elements})


def _with_text(store: StoreRecord, sources: Mapping[str, bytes]) -> StoreRecord:
    """A store at the innermost line that is the submission's, with what that holds."""
    if store.place is None:
        return store
    lines = [Line(store.place.file, store.place.line), *store.place.calls]
    for number, place in enumerate(lines, 1):
        if text := line_of(sources, place.file, place.line):
            at = replace(
                store.place, file=place.file, line=place.line, calls=tuple(lines[number:]), text=text
            )
            return store.model_copy(update={"place": at})
    return store


def _no_speed(entry: ProblemPoints, verdict: Verdict, message: str = "") -> PerformanceResult:
    return PerformanceResult(verdict=verdict, target=entry.target, measure=entry.measure, message=message)


def _check(tool: Tool, checked: Judged, sources: Mapping[str, bytes]) -> CheckResult:
    mine = [finding for finding in (*checked.findings, *checked.waived) if finding.tool == tool]
    counting = [finding for finding in mine if finding.counts and finding not in checked.waived]
    return CheckResult(
        tool=tool,
        verdict=Verdict.FAIL if counting else Verdict.PASS,
        findings=[
            _finding(
                finding,
                checked.waived.get(finding, _WARNING if finding.severity is Severity.WARNING else ""),
                sources,
            )
            for finding in mine
        ],
    )


def _finding(finding: Finding, waived: str, sources: Mapping[str, bytes]) -> FindingRecord:
    """A finding with what the sources hold at its places."""
    file, line = place_of(finding, sources)
    library = library_of(finding, sources)
    return FindingRecord(
        waived=waived,
        severity=finding.severity,
        kind=finding.kind,
        reason=finding.reason,
        kernel=finding.kernel,
        file=file,
        line=line,
        places=[
            PlaceRecord(**vars(place), text=line_of(sources, place.file, place.line))
            for place in finding.places
        ],
        facts={**finding.values, **({"in_library": library} if library else {})},
        source=excerpt(sources, file, line),
    )
