"""Whole runs on the simulator: real compiler, real kernels, real scores, on the usual cases."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from first_assignment import ASSIGNMENT, MUTANTS
from interrupted import InterruptedPool

from grader.assignments.assignment import load
from grader.assignments.rules import Hidden
from grader.devices.device import Answer, Schedule, Status
from grader.devices.gpu import Gpu
from grader.devices.profile import ProfileError
from grader.devices.sharing import Sharing as GpuSharing
from grader.devices.sim import SimSession
from grader.judge.correctness.cases import Judged
from grader.judge.correctness.diagnosis import NOTHING_WRITTEN
from grader.judge.timing.measure import Measured
from grader.judge.timing.others import Others
from grader.languages.language import FileBuild
from grader.problems.problem import MEMORY_GROUP
from grader.records.record import CaseResult, PerformanceResult
from grader.records.verdict import Verdict
from grader.reports.causes import sightings
from grader.run import grading, kernel
from grader.run.bench import Bench, Machine
from grader.run.judging import without_cases
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grader.assignments.assignment import Assignment
    from grader.assignments.rules import WorkLimits
    from grader.devices.device import Call
    from grader.judge.timing.measure import Timing
    from grader.judge.timing.statistics import Goal
    from grader.problems.problem import Case, Expectation, Inputs, Problem
    from grader.records.record import ProblemResult, Record

pytestmark = pytest.mark.usefixtures("usual_cases")
ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "reference"
FOUR = ("softmax_forward", "softmax_backward", "layernorm_forward", "layernorm_backward")
END_OF_FORWARD = "      store(y + column, value[c]);\n    }\n  }\n}\n\nconstexpr int NARROW"


def grade(path: Path, *problems: str, memory: str = "auto") -> Record:
    assignment = load("llm_systems_3")
    names = problems or tuple(problem.id for problem in assignment.rules.problems)
    request = grading.GradingRequest(path, assignment, names, GradingOptions("sim", memory=memory), seed=1)
    return grading.grade(request, bench=remembering())


@cache
def remembering() -> Bench:
    """What most gradings here share: they meet the same cases."""
    return Bench(remembers=True)


def grade_alone(path: Path, problem: str) -> ProblemResult:
    request = grading.GradingRequest(path, load("llm_systems_3"), (problem,), GradingOptions("sim"), seed=1)
    (result,) = grading.grade(request).problems
    return result


def by_id(record: Record) -> dict[str, ProblemResult]:
    return {problem.id: problem for problem in record.problems}


@pytest.fixture
def submission(tmp_path: Path, ptx_only: None) -> Path:  # noqa: ARG001
    """A copy of the reference to spoil."""
    return Path(shutil.copytree(REFERENCE, tmp_path / "hw3"))


def spoil(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, f"{path.name} has changed: {old!r} stands there {text.count(old)} times"
    path.write_text(text.replace(old, new))


def test_what_a_call_may_print_is_the_assignments_to_say(submission: Path) -> None:
    call = "  launch(out_grad, soft_inp, rows, softmax_len, stream);"
    spoil(submission / "softmax_kernel.cu", "#include <cstdint>", "#include <cstdint>\n#include <cstdio>")
    spoil(submission / "softmax_kernel.cu", call, f'  printf("%100000d", rows);\n{call}')
    assignment = load("llm_systems_3")
    limits = assignment.rules.limits.model_copy(update={"output_mib": 1 / 16})
    less = replace(assignment, rules=assignment.rules.model_copy(update={"limits": limits}))
    for given, message in ((assignment, ""), (less, "more than 0.0625 MiB of printed output")):
        request = grading.GradingRequest(
            submission, given, ("softmax_backward",), GradingOptions("sim"), seed=1
        )
        (problem,) = grading.grade(request, bench=Sharing()).problems
        assert problem.correctness.cases[0].message == message


def test_the_untouched_template_compiles_scores_nothing_and_says_so_in_a_line() -> None:
    record = grade(ROOT / "student_template")
    assert (record.score.earned, record.score.decided) == (0, 60)
    assert record.exit_code == 1
    for name in FOUR:
        result = by_id(record)[name]
        assert result.build is not None
        assert result.build.ok
        assert result.correctness.summary == NOTHING_WRITTEN.cause


def test_one_wrong_kernel_loses_its_problem_only(submission: Path) -> None:
    spoil(
        submission / "layernorm_kernel.cu",
        "const float variance = square[0] * share;",
        "const float variance = square[0] / (hidden - 1);",
    )
    problems = by_id(grade(submission, *FOUR))
    assert problems["layernorm_forward"].verdict is Verdict.FAIL
    assert {problems[name].verdict for name in FOUR if name != "layernorm_forward"} == {Verdict.PASS}
    assert "unbiased" in problems["layernorm_forward"].correctness.cases[0].diagnosis


@pytest.mark.parametrize(
    ("crime", "said"),
    [
        ("*(volatile int*)0 = 1;", "SIGSEGV"),
        ("exit(0);", "ended its process with exit code 0"),
    ],
)
def test_a_crash_in_one_problem_keeps_the_points_of_the_others(
    submission: Path, crime: str, said: str
) -> None:
    file = submission / "softmax_kernel.cu"
    spoil(
        file,
        "  const auto launch = softmax_len % 4 == 0",
        f"  {crime}\n  const auto launch = softmax_len % 4 == 0",
    )
    spoil(file, "#include <cstdint>", "#include <cstdint>\n#include <cstdlib>")
    problems = by_id(grade(submission, *FOUR))
    crashed = problems["softmax_backward"]
    assert crashed.points.earned == 0
    assert said in crashed.correctness.cases[0].message
    assert crashed.correctness.cases[-1].message.startswith("not run")
    assert [problems[name].points.earned for name in FOUR if name != "softmax_backward"] == [12, 12, 12]


@pytest.mark.parametrize("memory", ["auto", "device"])
@pytest.mark.parametrize("times", [1, 2])
def test_where_the_machine_fails_a_problem_is_judged_once_more_when_the_others_are_done(
    times: int, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With "auto", the first call is the one that finds out which pointers the launcher takes."""
    honest, asked = SimSession.run, list[str]()

    def busy(session: SimSession, call: Call) -> Answer:
        asked.append(call.entry_point)
        if call.entry_point == "launch_attn_softmax_bw" and asked.count(call.entry_point) <= times:
            return Answer(Status.LOST, "the machine was too busy")
        return honest(session, call)

    monkeypatch.setattr(SimSession, "run", busy)
    record = grade(REFERENCE, "softmax_backward", "layernorm_forward", memory=memory)
    again, other = record.problems
    assert other.verdict is Verdict.PASS
    if times == 1:
        assert (again.verdict, again.points.earned, record.exit_code) == (Verdict.PASS, 12, 0)
        assert again.notes == []
        tried_again = asked.index("launch_attn_softmax_bw", asked.index("launch_attn_softmax_bw") + 1)
        assert "launch_layernorm" not in asked[tried_again:]
    else:
        assert (again.verdict, again.points.decided, record.exit_code) == (Verdict.INFRA_ERROR, 0, 3)
        messages = {case.message for case in again.correctness.cases} or {again.message}
        assert messages == {"the machine was too busy"}


def test_the_same_seed_gives_the_same_errors() -> None:
    first, second = (grade_alone(REFERENCE, "layernorm_backward") for _ in range(2))
    assert [case.outputs for case in first.correctness.cases] == [
        case.outputs for case in second.correctness.cases
    ]


def test_a_finding_takes_the_memory_group_even_where_the_numbers_are_right(submission: Path) -> None:
    spoil(
        submission / "layernorm_kernel.cu",
        "  const float inverse_sigma = rsqrtf(variance + EPSILON);\n\n  if (lane == 0 && columns > 0) {",
        "  const float inverse_sigma = rsqrtf(variance + EPSILON);\n"
        "  __shared__ float unused[2];\n"
        "  if (threadIdx.x < 64 && hidden > 8000) *(volatile float*)(unused + 1) = threadIdx.x;\n\n"
        "  if (lane == 0 && columns > 0) {",
    )
    result = grade(submission, "layernorm_forward").problems[0]
    groups = {group.name: group for group in result.correctness.groups}
    assert groups["memory and concurrency"].verdict is Verdict.FAIL
    assert result.points.earned == 9
    findings = [finding for check in result.checks for finding in check.findings]
    assert findings[0].file == "layernorm_kernel.cu"
    assert findings[0].line > 0
    source = findings[0].source
    assert source is not None
    assert source.lines[findings[0].line - source.first].strip()


def test_a_read_past_the_end_takes_the_memory_group_alone(submission: Path) -> None:
    past = "  if (blockIdx.x == 0) *(volatile const float*)(inp + static_cast<size_t>(rows) * hidden);\n"
    spoil(
        submission / "layernorm_kernel.cu",
        END_OF_FORWARD,
        END_OF_FORWARD.replace("  }\n}\n", f"  }}\n{past}}}\n"),
    )
    result = grade(submission, "layernorm_forward").problems[0]
    verdicts = {group.name: group.verdict for group in result.correctness.groups}
    assert verdicts.pop(MEMORY_GROUP) is Verdict.FAIL
    assert set(verdicts.values()) == {Verdict.PASS}
    assert {place.kind for place in sightings(result)} == {"global_oob"}


def test_threads_that_leave_before_a_barrier_cost_nothing(submission: Path) -> None:
    late = "  if (threadIdx.x >= 64) return;\n  __syncthreads();\n"
    spoil(
        submission / "layernorm_kernel.cu",
        END_OF_FORWARD,
        END_OF_FORWARD.replace("  }\n}\n", f"  }}\n{late}}}\n"),
    )
    result = grade(submission, "layernorm_forward").problems[0]
    assert {group.verdict for group in result.correctness.groups} == {Verdict.PASS}
    assert {check.verdict for check in result.checks} == {Verdict.PASS}
    (finding,) = {
        (finding.kind, finding.severity, bool(finding.waived), finding.places[0].line == finding.line)
        for check in result.checks
        for finding in check.findings
    }
    assert finding == ("divergent_barrier", "warning", True, True)


def test_a_launch_that_may_begin_too_early_takes_the_memory_group(submission: Path) -> None:
    spoil(
        submission / "softmax_kernel.cu",
        "    ker_attn_softmax_bw<B, WIDTH><<<blocks, B::THREADS, 0, stream>>>(",
        "    cudaLaunchAttribute early = {};\n"
        "    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;\n"
        "    early.val.programmaticStreamSerializationAllowed = 1;\n"
        "    cudaLaunchConfig_t config = {dim3(blocks), dim3(B::THREADS), 0, stream, &early, 1};\n"
        "    cudaLaunchKernelEx(&config, ker_attn_softmax_bw<B, WIDTH>, ",
    )
    result = grade(submission, "softmax_backward").problems[0]
    verdicts = {group.name: group.verdict for group in result.correctness.groups}
    assert verdicts.pop(MEMORY_GROUP) is Verdict.FAIL
    assert set(verdicts.values()) == {Verdict.PASS}
    assert result.verdict is Verdict.FAIL
    assert {place.kind for place in sightings(result)} == {"early_launch"}


def test_a_bench_that_remembers_judges_as_one_that_does_not(submission: Path) -> None:
    spoil(
        submission / "layernorm_kernel.cu",
        "const float variance = square[0] * share;",
        "const float variance = square[0] / (hidden - 1);",
    )
    bench = Bench(remembers=True, problems_at_once=1)
    assignment = load("llm_systems_3")
    alone = {path: grade_alone(path, "layernorm_forward") for path in (submission, REFERENCE)}
    for path in (submission, REFERENCE, submission):
        request = grading.GradingRequest(
            path, assignment, ("layernorm_forward",), GradingOptions("sim"), seed=1
        )
        shared = grading.grade(request, bench=bench).problems
        assert shared[0].correctness == alone[path].correctness


def test_what_was_built_ahead_is_taken_if_it_is_of_the_same_files(submission: Path) -> None:
    assignment = load("llm_systems_3")
    request = grading.GradingRequest(
        submission, assignment, ("softmax_backward",), GradingOptions("sim"), seed=1
    )
    built = grading.build_ahead(request, Bench())
    assert built is not None
    marked = grading.Built(
        built.sha256,
        {name: FileBuild(replace(build.full, log="ahead")) for name, build in built.builds.items()},
    )
    first = grading.grade(request, built=marked, bench=Sharing()).problems[0]
    assert first.build is not None
    assert first.build.log == "ahead"
    (submission / "softmax_kernel.cu").write_text("int main() { return nothing; }")
    second = grading.grade(request, built=marked, bench=Sharing()).problems[0]
    assert second.build is not None
    assert "nothing" in second.build.log


class Sharing(Bench):
    """A bench of its own, but for the inputs and expectations that all gradings here share."""

    def problems(self, assignment: Assignment, seed: int) -> Mapping[str, Problem]:
        return remembering().problems(assignment, seed)


class Lucky(Sharing):
    """A device that takes one order of execution only, as a GPU does on most days, with the sim beside it."""

    def machine(self, device: str, sandbox: str, limits: WorkLimits) -> Machine:  # type: ignore[override]
        machine = super().machine(device, sandbox, limits)
        lucky = copy(machine.device)
        lucky.name, lucky.schedules = "a GPU", Gpu.schedules
        return replace(machine, device=lucky)


def test_what_only_another_order_shows_fails_beside_a_gpu_too(submission: Path) -> None:
    (mutant,) = (one for one in MUTANTS if one.id == "lb-missing-event")
    (submission / mutant.file).write_text(mutant.text(ASSIGNMENT))
    request = grading.GradingRequest(
        submission, load("llm_systems_3"), (mutant.problem,), GradingOptions("sim"), seed=1
    )
    (problem,) = grading.grade(request, bench=Lucky()).problems
    wrong = [case for case in problem.correctness.cases if case.verdict is Verdict.FAIL]
    assert {case.group for case in wrong} == {mutant.group}
    assert {case.schedule for case in wrong} == {Schedule.LATE_STREAMS}
    assert all("right on a GPU this time" in (case.diagnosis or "") for case in wrong)
    assert problem.verdict is Verdict.FAIL


class Timing(Lucky):
    """The same with a clock, which nothing is timed by here."""

    def __init__(self) -> None:
        super().__init__()
        self.pytorch = Others(absent="PyTorch is not of interest here")

    def machine(self, device: str, sandbox: str, limits: WorkLimits) -> Machine:  # type: ignore[override]
        clock: Any = SimpleNamespace(identity="clock", sharing=GpuSharing("clock"))
        return replace(super().machine(device, sandbox, limits), gpu=clock)


@pytest.mark.parametrize(("mutant", "counts"), [("", True), ("lb-missing-event", False)])
def test_cases_beyond_the_simulator_count_if_simulator_and_gpu_find_nothing_else(
    submission: Path, monkeypatch: pytest.MonkeyPatch, mutant: str, *, counts: bool
) -> None:
    for one in MUTANTS:
        if one.id == mutant:
            (submission / one.file).write_text(one.text(ASSIGNMENT))
    beyond = CaseResult(name="beyond", group="shapes", verdict=Verdict.PASS)
    unmeasured = Measured(PerformanceResult(verdict=Verdict.NOT_MEASURED, target=3.7))
    monkeypatch.setattr(grading.ProblemJudge, "_beyond_simulator", lambda *_: Judged((beyond,)))
    monkeypatch.setattr(grading.ProblemJudge, "_measured", lambda *_: unmeasured)
    request = grading.GradingRequest(
        submission, load("llm_systems_3"), ("layernorm_backward",), GradingOptions("sim"), seed=1
    )
    (problem,) = grading.grade(request, bench=Timing()).problems
    assert (beyond in problem.correctness.cases) is counts
    assert (problem.correctness.verdict is Verdict.PASS) is counts


class Counting(Lucky):
    """The same; counts how often the oracle of each content is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[tuple[str, int]] = Counter()

    def problems(self, assignment: Assignment, seed: int) -> Mapping[str, Problem]:
        return {name: self.counted(one) for name, one in super().problems(assignment, seed).items()}

    def counted(self, problem: Problem) -> Problem:
        def oracle(case: Case, given: Inputs) -> Mapping[str, Expectation]:
            self.asked[case.name, case.seed] += 1
            return problem.oracle(case, given)

        return replace(problem, oracle=oracle)


def test_the_gpu_and_the_simulator_beside_it_share_their_oracles() -> None:
    bench = Counting()
    request = grading.GradingRequest(
        REFERENCE, load("llm_systems_3"), ("softmax_backward",), GradingOptions("sim"), seed=1
    )
    (problem,) = grading.grade(request, bench=bench).problems
    assert problem.correctness.verdict is Verdict.PASS
    again = [content for content, count in bench.asked.items() if count > 1]
    assert len(again) <= 2 < len(bench.asked)  # those that tried which pointers it takes


class Profiler(Sharing):
    """The simulator, with a device beside it that tells when it timed a kernel and when it profiled one."""

    l2_bytes = 1

    def __init__(self, monkeypatch: pytest.MonkeyPatch, why_not: str = "") -> None:
        super().__init__()
        self.pytorch = Others(absent="PyTorch is not of interest here")
        self.identity, self.sharing = "profiler", GpuSharing("profiler")
        self.done: list[str] = []
        self.why_not = why_not
        monkeypatch.setattr(kernel, "measure", self.measure)

    def machine(self, device: str, sandbox: str, limits: WorkLimits) -> Machine:
        return replace(super().machine(device, sandbox, limits), gpu=self)  # type: ignore[arg-type]

    def measure(self, timing: Timing, goal: Goal, _memory: object) -> Measured:
        self.done.append(f"timed {timing.problem.id}")
        result = PerformanceResult(verdict=Verdict.PASS, target=goal.target, speedup=goal.target)
        return Measured(result)

    def profiled(self, _library: Path, call: Call) -> list[str]:
        if self.why_not:
            raise ProfileError(self.why_not)
        self.done.append(f"profiled {call.entry_point}")
        return ["what was counted"]


@pytest.mark.parametrize("why_not", ["", "no counters here"])
def test_profiling_comes_after_all_that_is_timed_and_changes_no_verdict(
    why_not: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Profiler(monkeypatch, why_not)
    names = ("softmax_backward", "layernorm_backward")
    request = grading.GradingRequest(
        REFERENCE, load("llm_systems_3"), names, GradingOptions("sim"), seed=1, profile=True
    )
    record = grading.grade(request, bench=bench)
    assert sorted(bench.done[:2]) == sorted(f"timed {name}" for name in names)  # side by side
    assert bench.done[2:] == (
        [] if why_not else ["profiled launch_attn_softmax_bw", "profiled launch_layernorm_bw"]
    )
    assert (record.score.earned, record.exit_code, record.error) == (40, 0, None)
    notes = [note for note in record.submission.notes if "profile" in note]
    assert notes == ([f"not profiled: {why_not}"] if why_not else [])
    told = [line for problem in record.problems for line in problem.performance.info if "counted" in line]
    assert len(told) == (0 if why_not else 2)


def test_a_record_says_which_groups_students_may_not_see_and_until_when() -> None:
    assignment, until = load("llm_systems_3"), datetime(2026, 12, 1, tzinfo=UTC)
    hidden = Hidden(groups=("short rows",), until=until)
    rules = assignment.rules.model_copy(update={"hidden": hidden})
    request = grading.GradingRequest(
        REFERENCE, replace(assignment, rules=rules), ("softmax_backward",), GradingOptions("sim"), seed=1
    )
    (problem,) = grading.grade(request, bench=Sharing()).problems
    dates = {group.name: group.hidden_until for group in problem.correctness.groups}
    assert dates.pop("short rows") == until
    assert set(dates.values()) == {None}
    assert problem.points.earned == 12


def test_without_a_gpu_a_profile_is_a_note() -> None:
    request = grading.GradingRequest(
        REFERENCE, load("llm_systems_3"), ("softmax_backward",), GradingOptions("sim"), seed=1, profile=True
    )
    record = grading.grade(request, bench=Sharing())
    assert record.submission.notes[-1] == grading.NOT_PROFILED
    assert record.exit_code == 0


def test_a_problem_that_was_not_judged_says_its_language_and_what_its_speed_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "saxpy.py").write_text("def saxpy(y, x, a):\n    pass\n")
    monkeypatch.setattr(grading, "_build", interrupted)
    asked = ("saxpy", "vector_add")
    record = grading.grade(
        grading.GradingRequest(
            tmp_path, load("first_kernels"), asked, GradingOptions("sim", "process"), seed=1
        )
    )
    assert record.error == "interrupted"
    assert [problem.language for problem in record.problems] == ["triton", "cuda"]
    assert {problem.performance.measure for problem in record.problems} == {"share_of_limit"}


def test_a_problem_that_was_interrupted_says_in_which_case() -> None:
    def progress(text: str) -> None:
        if text.startswith("softmax_backward: case 3 of"):
            raise KeyboardInterrupt

    request = grading.GradingRequest(
        REFERENCE, load("llm_systems_3"), ("softmax_backward",), GradingOptions("sim"), seed=1
    )
    record = grading.grade(request, progress, Sharing())
    assert record.exit_code == 130
    message = record.problems[0].message
    assert message.startswith("interrupted, at case 3 of ")
    assert message.endswith(". To grade this problem alone, add --problem softmax_backward.")


def test_an_interrupt_while_problems_begin_stops_their_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped, ended = threading.Event(), []
    monkeypatch.setattr(grading.ProblemJudge, "check", lambda _: ended.append(stopped.wait(60)))
    monkeypatch.setattr(grading.ProblemJudge, "stop", lambda _: stopped.set())
    monkeypatch.setattr(grading, "ThreadPoolExecutor", InterruptedPool)
    record = grade(REFERENCE, *FOUR)
    assert record.error == "interrupted"
    assert ended == [True]


@pytest.mark.parametrize(("precise", "at_once"), [(False, 2), (True, 1)])
def test_two_problems_are_measured_at_a_time_but_not_where_they_are_to_be_precise(
    monkeypatch: pytest.MonkeyPatch, at_once: int, *, precise: bool
) -> None:
    both, measured = threading.Barrier(at_once, timeout=60), []
    running: list[str] = []

    def check(judge: grading.ProblemJudge) -> Callable[[], ProblemResult]:
        def result() -> ProblemResult:
            running.append(judge.id)
            measured.append(len(running))
            both.wait()
            running.remove(judge.id)
            return without_cases(judge.material.assignment, judge.id, Verdict.FAIL, "measured")

        return result

    monkeypatch.setattr(grading.ProblemJudge, "check", check)
    request = grading.GradingRequest(
        REFERENCE, load("llm_systems_3"), FOUR, GradingOptions("sim", precise=precise), seed=1
    )
    record = grading.grade(request, bench=Bench(problems_at_once=len(FOUR)))
    assert [(problem.id, problem.message) for problem in record.problems] == [
        (name, "measured") for name in FOUR
    ]
    assert (len(measured), max(measured)) == (4, at_once)


def test_a_grading_among_others_measures_each_problem_before_it_checks_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[tuple[str, str]] = []

    def check(judge: grading.ProblemJudge) -> Callable[[], ProblemResult]:
        def result() -> ProblemResult:
            order.append(("measured", judge.id))
            return without_cases(judge.material.assignment, judge.id, Verdict.FAIL, "measured")

        order.append(("checked", judge.id))
        judge.machine_failed = judge.id == FOUR[1] and order.count(order[-1]) == 1
        return result

    monkeypatch.setattr(grading.ProblemJudge, "check", check)
    request = grading.GradingRequest(REFERENCE, load("llm_systems_3"), FOUR, GradingOptions("sim"), seed=1)
    record = grading.grade(request, bench=Bench(problems_at_once=1))
    assert {problem.message for problem in record.problems} == {"measured"}
    first, again, *others = FOUR
    steps = [(what, name) for name in (first, *others) for what in ("checked", "measured")]
    assert order == [*steps[:2], ("checked", again), *steps[2:], ("checked", again), ("measured", again)]


def test_a_grading_that_judges_in_turn_begins_with_the_problem_whose_turn_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []

    def check(judge: grading.ProblemJudge) -> Callable[[], ProblemResult]:
        order.append(judge.id)
        return lambda: without_cases(judge.material.assignment, judge.id, Verdict.FAIL, "measured")

    monkeypatch.setattr(grading.ProblemJudge, "check", check)
    request = grading.GradingRequest(
        REFERENCE, load("llm_systems_3"), FOUR, GradingOptions("sim"), seed=1, turn=6
    )
    record = grading.grade(request, bench=Bench(problems_at_once=1))
    assert order == [*FOUR[2:], *FOUR[:2]]
    assert [problem.id for problem in record.problems] == list(FOUR)
