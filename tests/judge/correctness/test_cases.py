"""Cases driven through a device: every schedule counts, and a death costs what it must and no more."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import pytest

from grader.devices.device import (
    Answer,
    ArrayArgument,
    Call,
    LoadError,
    Memory,
    Schedule,
    Status,
    StreamArgument,
)
from grader.judge.correctness import calls
from grader.judge.correctness import cases as correctness
from grader.judge.correctness.diagnosis import NOTHING_WRITTEN
from grader.judge.correctness.remembered import remembered
from grader.problems.problem import (
    ArrayParameter,
    Candidate,
    Case,
    Expectation,
    Inputs,
    KernelProblem,
    Role,
    ScalarParameter,
    StreamParameter,
)
from grader.records.findings import Finding, LineCount, Severity, facts
from grader.records.gaps import Gap, GapKind
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

POISON = np.frombuffer(np.uint32(0xFFFFFFFF).tobytes() * 4, np.float32)


def double(case: Case) -> Inputs:
    return Inputs({"x": np.arange(4, dtype=np.float32) + case.seed}, {"y": (4,)}, {})


PROBLEM = KernelProblem(
    id="double",
    file="double.cu",
    entry_point="launch_double",
    parameters=(
        ArrayParameter("x", Role.INPUT),
        ArrayParameter("y", Role.OUTPUT),
        StreamParameter("first"),
        StreamParameter("second"),
    ),
    groups=("all",),
    cases=lambda _: (),
    timing_cases=lambda _: (),
    inputs=double,
    oracle=lambda _, given: {
        "y": Expectation((Candidate(2.0 * given.arrays["x"].astype(np.float64), np.full(4, 1e-6)),))
    },
    minimal_bytes=lambda _: 32,
)
CASES = tuple(Case(f"case {number}", "all", {}, "normal", number) for number in range(3))


@dataclass
class FakeSession:
    """Answers calls with ``work``."""

    work: Callable[[Call], Answer]
    closed: bool = False
    calls: list[Call] = field(default_factory=list)

    def run(self, call: Call) -> Answer:
        assert not self.closed
        self.calls.append(call)
        return self.work(call)

    def close(self) -> None:
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def right(call: Call) -> Answer:
    x = call.arguments[0]
    assert isinstance(x, ArrayArgument)
    assert x.data is not None
    return Answer(Status.RETURNED, arrays={"x": x.data, "y": 2 * x.data})


def run(
    work: Callable[[Call], Answer],
    schedules: tuple[Schedule, ...] = (Schedule.PROGRAM,),
    cases: tuple[Case, ...] = CASES,
    excuses: dict[str, correctness.Excuse] | None = None,
) -> tuple[correctness.Judged, list[FakeSession]]:
    sessions: list[FakeSession] = []

    def opened() -> FakeSession:
        sessions.append(FakeSession(work))
        return sessions[-1]

    judged = correctness.judge(
        PROBLEM, cases, opened, schedules, memory=Memory.DEVICE, seconds=1.0, excuses=excuses
    )
    return judged, sessions


def test_right_answers_pass_in_one_session_that_is_closed() -> None:
    judged, sessions = run(right)
    assert [case.verdict for case in judged.cases] == [Verdict.PASS] * 3
    assert len(sessions) == 1
    assert sessions[0].closed


def test_a_case_runs_under_as_many_orders_as_it_asks_for() -> None:
    taken = []

    def note(call: Call) -> Answer:
        taken.append(call.schedule)
        return right(call)

    cases = tuple(replace(case, orders=orders) for case, orders in zip(CASES, (None, 1, 2), strict=True))
    judged, _ = run(note, tuple(Schedule)[:3], cases)
    assert [case.verdict for case in judged.cases] == [Verdict.PASS] * 3
    first, second, third = tuple(Schedule)[:3]
    assert taken == [first, second, third, first, first, second]


def test_what_is_worked_out_ahead_is_what_the_cases_ask_for() -> None:
    asked: list[tuple[str, int]] = []

    def noted(case: Case, given: Inputs) -> Mapping[str, Expectation]:
        asked.append((case.name, case.seed))
        return PROBLEM.oracle(case, given)

    orders, cases = (Schedule.PROGRAM, Schedule.AGAIN), (CASES[0], replace(CASES[1], orders=1))
    problem = remembered(replace(PROBLEM, oracle=noted))
    correctness.work_out(problem, cases, orders, lambda: False)
    assert asked == [("case 0", 0), ("case 0", 1), ("case 1", 1)]
    correctness.judge(problem, cases, lambda: FakeSession(right), orders, memory=Memory.DEVICE, seconds=1.0)
    assert len(asked) == 3
    correctness.work_out(problem, CASES[2:], orders, lambda: True)
    assert len(asked) == 3


@pytest.mark.parametrize("on_one_stream", [False, True])
def test_late_streams_are_left_out_where_one_stream_had_all_the_work(*, on_one_stream: bool) -> None:
    taken = []

    def note(call: Call) -> Answer:
        taken.append(call.schedule)
        return replace(right(call), on_one_stream=on_one_stream)

    schedules = (Schedule.PROGRAM, Schedule.REVERSED, Schedule.LATE_STREAMS)
    run(note, schedules, CASES[:1])
    assert taken == list(schedules[:2] if on_one_stream else schedules)


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize(
    ("bad", "hint"),
    [(Schedule.LATE_STREAMS, "no event"), (Schedule.REVERSED, "does a block or a warp rely on another one")],
)
def test_an_answer_that_is_wrong_in_one_schedule_only_is_named_a_matter_of_order(
    bad: Schedule, hint: str, *, staged: bool
) -> None:
    def late(call: Call) -> Answer:
        answer = right(call)
        if call.schedule is bad:
            return replace(answer, arrays={**answer.arrays, "y": answer.arrays["y"] + 1})
        return answer

    cases = tuple(replace(case, staged=staged) for case in CASES)
    judged, _ = run(late, (Schedule.PROGRAM, bad), cases)
    assert {case.verdict for case in judged.cases} == {Verdict.FAIL}
    assert judged.cases[0].schedule == bad
    assert "depends on the order of execution" in judged.cases[0].diagnosis
    assert hint in judged.cases[0].diagnosis


def test_no_order_is_blamed_for_numbers_that_are_wrong_in_program_order_too() -> None:
    def first_number(call: Call) -> float:
        x = call.arguments[0]
        assert isinstance(x, ArrayArgument)
        assert x.data is not None
        return float(x.data[0])

    def wrong_from(least: float) -> Callable[[Call], Answer]:
        def work(call: Call) -> Answer:
            answer = right(call)
            off = 1 if first_number(call) >= least else 0
            return replace(answer, arrays={**answer.arrays, "y": answer.arrays["y"] + off})

        return work

    for least in (0, 1):  # of the contents: each, and those of later schedules
        judged, _ = run(wrong_from(least), (Schedule.PROGRAM, Schedule.REVERSED), CASES[:1])
        assert judged.cases[0].verdict is Verdict.FAIL
        assert judged.cases[0].schedule is None
        assert "order" not in judged.cases[0].diagnosis


def test_wrong_numbers_of_the_sim_count_beside_a_gpu_and_what_it_could_not_finish_does_not() -> None:
    cases = tuple(replace(case, seed=10 * case.seed) for case in CASES)

    def first(call: Call) -> int:
        x = call.arguments[0]
        assert isinstance(x, ArrayArgument)
        assert x.data is not None
        return int(x.data[0])

    def off_by_one(call: Call) -> Answer:
        return replace(right(call), arrays={**right(call).arrays, "y": right(call).arrays["y"] + 1})

    def on_sim(call: Call) -> Answer:
        if first(call) >= 20:
            return Answer(Status.TIMEOUT, message="60 s are over")
        return (
            off_by_one(call) if call.schedule is Schedule.LATE_STREAMS and first(call) < 10 else right(call)
        )

    def on_gpu(call: Call) -> Answer:
        return off_by_one(call) if 10 <= first(call) < 20 else right(call)

    gpu, _ = run(on_gpu, cases=cases)
    sim, _ = run(on_sim, (Schedule.PROGRAM, Schedule.LATE_STREAMS), cases)
    one, two, three = correctness.beside(gpu.cases, sim.cases, "an H100")
    assert (one.verdict, one.schedule) == (Verdict.FAIL, Schedule.LATE_STREAMS)
    assert (one.diagnosis or "").startswith("right on an H100 this time, wrong on the sim; right in program")
    assert (two, three) == gpu.cases[1:]
    assert (two.verdict, three.verdict) == (Verdict.FAIL, Verdict.PASS)


def test_an_answer_that_misses_the_given_streams_alone_is_named_so() -> None:
    def elsewhere(call: Call) -> Answer:
        answer = right(call)
        return replace(answer, arrays={**answer.arrays, "y": POISON}) if call.staged else answer

    judged, _ = run(elsewhere, cases=(replace(CASES[0], staged=True), CASES[1]))
    assert "another stream" in judged.cases[0].diagnosis
    assert judged.cases[1].verdict is Verdict.PASS


def test_an_answer_that_a_call_queued_behind_it_changes_is_named_so() -> None:
    def overtaken(call: Call) -> Answer:
        answer = right(call)
        return replace(answer, arrays={**answer.arrays, "y": POISON}) if call.queued else answer

    judged, _ = run(overtaken, cases=(replace(CASES[0], staged=True, queued={"n": 2}), CASES[1]))
    assert "a call of other sizes or numbers comes behind it" in judged.cases[0].diagnosis
    assert judged.cases[1].verdict is Verdict.PASS


def test_a_call_that_is_queued_has_other_sizes_and_other_numbers() -> None:
    scaled = replace(
        PROBLEM,
        parameters=(*PROBLEM.parameters, ScalarParameter("n", "int"), ScalarParameter("a", "float")),
    )
    case = replace(CASES[0], sizes={"n": 4}, staged=True, queued={"n": 2})
    for usual, changed in ((0.5, 1.0), (0.0, 1.0)):
        inputs = Inputs({"x": np.zeros(4, np.float32)}, {"y": (4,)}, {"n": 4, "a": usual})
        call = calls.case_call(scaled, case, inputs, 1, Memory.DEVICE)
        assert call.queued == {"n": 2, "a": changed}
        assert not calls.case_call(scaled, replace(case, queued={}), inputs, 1, Memory.DEVICE).queued


def test_an_answer_that_is_right_only_once_is_named_a_matter_of_state() -> None:
    calls: list[Call] = []

    def once(call: Call) -> Answer:
        calls.append(call)
        answer = right(call)
        return (
            answer if len(calls) == 1 else replace(answer, arrays={**answer.arrays, "y": answer.arrays["x"]})
        )

    judged, _ = run(once, (Schedule.PROGRAM, Schedule.LATE_STREAMS))
    assert "is something kept between calls" in judged.cases[0].diagnosis


@pytest.mark.parametrize("keeps", [True, False])
def test_what_is_kept_from_the_first_call_is_told_from_numbers_that_are_wrong_anywhere(
    *, keeps: bool
) -> None:
    """The first content of each case is right whenever it comes, and what comes in its place is wrong."""
    kept: dict[float, np.ndarray] = {}
    starts: list[FakeSession] = []

    def work(call: Call) -> Answer:
        answer = right(call)
        x, y = answer.arrays["x"], answer.arrays["y"]
        if keeps:
            return replace(answer, arrays={"x": x, "y": kept.setdefault(x[0] // 10, y)})
        return replace(answer, arrays={"x": x, "y": y + x[0] % 10})

    def opened() -> FakeSession:
        kept.clear()
        assert all(session.closed for session in starts)
        starts.append(FakeSession(work))
        return starts[-1]

    judged = correctness.judge(
        PROBLEM,
        [replace(case, seed=10 * case.seed) for case in CASES],
        opened,
        (Schedule.PROGRAM, Schedule.REVERSED),
        memory=Memory.DEVICE,
        seconds=1.0,
    )
    assert {case.verdict for case in judged.cases} == {Verdict.FAIL}
    assert all(("right in the first call" in (case.diagnosis or "")) == keeps for case in judged.cases)
    assert len(starts) == (2 if keeps else 3)


@pytest.mark.parametrize("keeps", [True, False])
def test_what_is_kept_from_the_first_case_is_told_from_cases_that_are_wrong_anyhow(*, keeps: bool) -> None:
    sessions: list[FakeSession] = []

    def work(call: Call) -> Answer:
        answer = right(call)
        spoilt = len(sessions[-1].calls) > 1 if keeps else answer.arrays["x"][0] > 0
        return replace(answer, arrays={"x": answer.arrays["x"], "y": answer.arrays["y"] + spoilt})

    def opened() -> FakeSession:
        assert all(session.closed for session in sessions)
        sessions.append(FakeSession(work))
        return sessions[-1]

    judged = correctness.judge(PROBLEM, CASES, opened, (Schedule.PROGRAM,), memory=Memory.DEVICE, seconds=1.0)
    assert [case.verdict for case in judged.cases] == [Verdict.PASS, Verdict.FAIL, Verdict.FAIL]
    noted = ["right in the first call" in (case.diagnosis or "") for case in judged.cases]
    assert noted == [False, keeps, keeps]
    assert len(sessions) == (2 if keeps else 3)


def test_a_shuffle_without_a_value_is_named_where_numbers_are_wrong() -> None:
    quiet = LineCount("k", "/build/k.cu", 30, *(0,) * 12)
    counts = (quiet, replace(quiet, line=32, undefined_lanes=8), replace(quiet, line=34, undefined_lanes=8))

    def partly(call: Call) -> Answer:
        answer = replace(right(call), counts=counts)
        wrong = call.arguments[0].data[0] > 0  # type: ignore[union-attr]
        return replace(answer, arrays={**answer.arrays, "y": answer.arrays["y"] + wrong})

    judged, _ = run(partly, cases=tuple(replace(CASES[0], seed=seed) for seed in range(20)))
    assert {case.verdict for case in judged.cases} == {Verdict.PASS, Verdict.FAIL}
    for case in judged.cases:
        assert ("the shuffle at k.cu:32 takes" in case.diagnosis) == (case.verdict is Verdict.FAIL)


def test_hints_come_from_the_cases_that_are_to_give_them() -> None:
    strided = LineCount("k", "/build/k.cu", 30, 100, 3200, 100, 3200, 400, 12800, *(0,) * 6)

    def traffic(call: Call) -> Answer:
        first = call.arguments[0].data[0]  # type: ignore[union-attr]
        return replace(right(call), counts=(replace(strided, line=30 + int(first)),))

    def lines(hinted: Callable[[Case], bool]) -> list[int]:
        judged = correctness.judge(
            PROBLEM,
            CASES,
            lambda: FakeSession(traffic),
            (Schedule.PROGRAM,),
            memory=Memory.DEVICE,
            seconds=1.0,
            hinted=hinted,
        )
        return [hint.line for hint in judged.hints]

    assert len(lines(lambda _case: True)) == len(CASES)
    (line,) = lines(lambda case: case is CASES[1])
    assert line in lines(lambda _case: True)
    assert lines(lambda _case: False) == []


def test_every_schedule_meets_other_numbers() -> None:
    seen: list[bytes] = []

    def note(call: Call) -> Answer:
        x = call.arguments[0]
        assert isinstance(x, ArrayArgument)
        assert x.data is not None
        seen.append(x.data.tobytes())
        return right(call)

    run(note, (Schedule.PROGRAM, Schedule.REVERSED))
    assert all(first != second for first, second in zip(seen[::2], seen[1::2], strict=True))


def content(call: Call) -> float:
    x = call.arguments[0]
    assert isinstance(x, ArrayArgument)
    assert x.data is not None
    return float(x.data[0])


def numbered(count: int) -> tuple[Case, ...]:
    return tuple(Case(f"case {number}", "all", {}, "normal", number) for number in range(count))


ENDS = [Status.CRASHED, Status.EXITED, Status.TIMEOUT, Status.CUDA_ERROR, Status.LIMIT]


def test_a_later_order_meets_a_similar_case_where_there_is_one_and_else_fresh_numbers() -> None:
    met: list[tuple[int, int]] = []

    def inputs(case: Case) -> Inputs:
        met.append((case.seed, case.moved))
        return double(case)

    def similar(case: Case, number: int) -> Case | None:
        return replace(case, moved=number) if case.seed > 1 else None

    correctness.judge(
        replace(PROBLEM, inputs=inputs, similar=similar),
        tuple(Case(f"case {seed}", "all", {}, "normal", seed) for seed in (1, 2, 3)),
        lambda: FakeSession(right),
        (Schedule.PROGRAM, Schedule.REVERSED),
        memory=Memory.DEVICE,
        seconds=1.0,
    )
    assert met == [(1, 0), (2, 0), (2, 0), (3, 0), (3, 0), (3, 1)]


@pytest.mark.parametrize("status", ENDS)
def test_a_case_that_ends_the_runner_costs_itself_alone(status: Status) -> None:
    judged, sessions = run(lambda call: Answer(status, "it died") if content(call) == 1 else right(call))
    assert [case.verdict for case in judged.cases] == [Verdict.PASS, Verdict.FAIL, Verdict.PASS]
    assert judged.cases[1].message == "it died"
    assert [session.closed for session in sessions] == [True, True]
    assert not judged.machine_failed


@pytest.mark.parametrize("status", ENDS)
def test_after_three_endings_and_no_pass_the_remaining_cases_are_not_run(status: Status) -> None:
    judged, sessions = run(lambda _: Answer(status, "it died"), cases=numbered(5))
    assert len(sessions) == 3
    assert {case.verdict for case in judged.cases} == {Verdict.FAIL}
    reason = "not run: 3 cases ended the runner (case 0, case 1, case 2)"
    assert [case.message for case in judged.cases] == ["it died"] * 3 + [reason] * 2


@pytest.mark.parametrize(("status", "passed"), [(Status.CRASHED, 4), (Status.TIMEOUT, 2)])
def test_sizes_that_a_launcher_refuses_cost_themselves_but_three_that_hang_are_enough(
    status: Status, passed: int
) -> None:
    dies = (1, 2, 4, 5)
    judged, _ = run(
        lambda call: Answer(status, "it died") if content(call) in dies else right(call), cases=numbered(8)
    )
    assert [case.verdict for case in judged.cases].count(Verdict.PASS) == passed
    assert (judged.cases[7].message == "") is (status is Status.CRASHED)


def test_a_fault_of_the_machine_ends_all_and_is_nobodys_failure() -> None:
    judged, sessions = run(
        lambda call: Answer(Status.LOST, "too busy") if content(call) == 1 else right(call)
    )
    assert judged.machine_failed
    verdicts = [Verdict.PASS, Verdict.INFRA_ERROR, Verdict.INFRA_ERROR]
    assert [case.verdict for case in judged.cases] == verdicts
    assert judged.cases[2].message == "too busy"
    assert len(sessions) == 1


def test_what_the_simulator_does_not_know_is_no_fault_and_the_next_case_gets_a_new_session() -> None:
    def unknown(call: Call) -> Answer:
        x = call.arguments[0]
        assert isinstance(x, ArrayArgument)
        assert x.data is not None
        gap = Gap(GapKind.INSTRUCTION, "tex.2d", "textures", "k", "k.cu", 7)
        lacking = Answer(Status.UNSUPPORTED, "tex.2d at k.cu:7", gaps=(gap,))
        return lacking if x.data[0] == 0 else right(call)

    judged, sessions = run(unknown)
    assert [case.verdict for case in judged.cases] == [Verdict.NOT_MEASURED, Verdict.PASS, Verdict.PASS]
    assert not judged.machine_failed
    assert judged.cases[0].message == "tex.2d at k.cu:7"
    (gap,) = judged.cases[0].gaps
    assert (gap.kind, gap.feature, gap.file, gap.line) == (GapKind.INSTRUCTION, "textures", "k.cu", 7)
    assert len(sessions) == 2


def test_a_library_that_does_not_load_fails_every_case() -> None:
    def refuse() -> FakeSession:
        raise LoadError("no launch_double in double.cu")

    judged = correctness.judge(PROBLEM, CASES, refuse, (Schedule.PROGRAM,), memory=Memory.DEVICE, seconds=1.0)
    assert {case.verdict for case in judged.cases} == {Verdict.FAIL}
    assert judged.cases[0].message == "no launch_double in double.cu"


def test_a_forged_channel_is_untrusted_with_its_reason() -> None:
    judged, _ = run(lambda _: Answer(Status.UNTRUSTED, "forged channel"))
    assert judged.cases[0].verdict is Verdict.UNTRUSTED
    assert judged.untrusted[0] == "forged channel"


def test_a_changed_input_fails_right_numbers() -> None:
    def careless(call: Call) -> Answer:
        answer = right(call)
        return replace(answer, arrays={**answer.arrays, "x": answer.arrays["x"] + 1})

    judged, _ = run(careless)
    assert judged.cases[0].verdict is Verdict.FAIL
    assert "x must not change, but 4 of its elements did" in judged.cases[0].message


OVERRUN = Finding("global_oob", "end_written", facts=facts(array="y"))


def past(call: Call, *, strayed: bool = True) -> Answer:
    return replace(right(call), overrun=(OVERRUN,), strayed=strayed)


def test_an_overrun_is_a_finding_beside_right_numbers_and_costs_no_later_case() -> None:
    def broken(call: Call) -> Answer:
        kept.append(call)
        if len(kept) == 2:
            return Answer(Status.CUDA_ERROR, "what it hit")
        return past(call) if len(kept) == 1 else right(call)

    kept: list[Call] = []
    judged, sessions = run(broken)
    assert [case.verdict for case in judged.cases] == [Verdict.PASS] * 3
    assert judged.findings == (OVERRUN,)
    assert [len(session.calls) for session in sessions] == [2, 2]
    assert all(session.closed for session in sessions)


@pytest.mark.parametrize("strayed", [True, False])
def test_a_case_that_fails_by_itself_behind_an_overrun_fails(*, strayed: bool) -> None:
    def broken(call: Call) -> Answer:
        x = call.arguments[0]
        assert isinstance(x, ArrayArgument)
        assert x.data is not None
        if x.data[0] == 1:
            return Answer(Status.CUDA_ERROR, "by itself")
        return past(call, strayed=strayed)

    judged, sessions = run(broken)
    assert [case.verdict for case in judged.cases] == [Verdict.PASS, Verdict.FAIL, Verdict.PASS]
    assert [len(session.calls) for session in sessions] == ([2, 1, 1] if strayed else [2, 1])


def test_who_cannot_be_trusted_gets_no_second_try_behind_an_overrun() -> None:
    def forging(call: Call) -> Answer:
        kept.append(call)
        if len(kept) == 2:
            return Answer(Status.UNTRUSTED, "forged channel")
        return past(call)

    kept: list[Call] = []
    judged, _ = run(forging)
    assert judged.untrusted[0] == "forged channel"
    assert len(kept) == 2


def test_an_untouched_template_is_one_line() -> None:
    def nothing(call: Call) -> Answer:
        return replace(right(call), arrays={"x": right(call).arrays["x"], "y": POISON})

    judged, _ = run(nothing)
    assert judged.summary == NOTHING_WRITTEN.cause


def test_a_file_with_nothing_but_places_to_write_is_one_line_that_names_them() -> None:
    def raises(call: Call) -> Answer:
        x = call.arguments[0]
        assert isinstance(x, ArrayArgument)
        assert x.data is not None
        return Answer(Status.UNBEGUN, f"double.py:{4 if x.data[0] else 2}: forward is still to be written")

    judged, _ = run(raises)
    assert judged.summary == (
        "double.py:2: forward is still to be written; double.py:4: forward is still to be written"
    )


def test_streams_are_distinct_unless_the_case_says_otherwise() -> None:
    one = calls.arguments(PROBLEM, replace(CASES[0], same_stream=True), double(CASES[0]))
    two = calls.arguments(PROBLEM, CASES[0], double(CASES[0]))
    assert [argument.index for argument in one if isinstance(argument, StreamArgument)] == [0, 0]
    assert [argument.index for argument in two if isinstance(argument, StreamArgument)] == [0, 1]


PAST = Finding("global_oob", "behind", "ker", "k.cu", 7)
RACE = Finding("race_shared", "no_syncthreads", "ker", "k.cu", 9)
LEAK = Finding("leak", "each_call", "", "k.cu", 3, severity=Severity.WARNING)
LEFT = Finding("divergent_barrier", "exited", "ker", "k.cu", 4, severity=Severity.WARNING)
EXCUSE = correctness.Excuse(frozenset({"global_oob"}), "the starter does")


def seen(*findings: Finding, dead: bool = True) -> Callable[[Call], Answer]:
    """Case 1 shows ``findings``, and dies of them."""

    def work(call: Call) -> Answer:
        x = call.arguments[0]
        assert isinstance(x, ArrayArgument)
        assert x.data is not None
        if x.data[0] != 1:
            return right(call)
        fault = Answer(Status.CUDA_ERROR, "illegal address") if dead else right(call)
        return replace(fault, findings=findings)

    return work


def test_an_excused_death_is_waived_and_ends_nothing() -> None:
    judged, sessions = run(seen(PAST, LEAK, LEFT), excuses={"case 1": EXCUSE})
    assert [case.verdict for case in judged.cases] == [Verdict.PASS, Verdict.NOT_MEASURED, Verdict.PASS]
    assert [case.waived for case in judged.cases] == ["", "the starter does", ""]
    assert (judged.findings, judged.waived) == ((LEAK, LEFT), {PAST: "the starter does"})
    assert [session.closed for session in sessions] == [True, True]


@pytest.mark.parametrize("findings", [(), (RACE,), (PAST, RACE), (LEAK,)])
def test_what_is_not_excused_counts_in_an_excused_case_too(findings: tuple[Finding, ...]) -> None:
    judged, _ = run(seen(*findings), excuses={"case 1": EXCUSE})
    assert judged.cases[1].verdict is Verdict.FAIL
    assert judged.findings == findings


def test_an_excuse_for_numbers_waives_a_case_that_fails_without_a_finding() -> None:
    def wrong(call: Call) -> Answer:
        answer = right(call)
        return replace(answer, arrays={**answer.arrays, "y": answer.arrays["y"] + 1})

    for numbers, verdict in ((True, Verdict.NOT_MEASURED), (False, Verdict.FAIL)):
        judged, _ = run(wrong, excuses={"case 1": replace(EXCUSE, numbers=numbers)})
        assert [case.verdict for case in judged.cases] == [Verdict.FAIL, verdict, Verdict.FAIL]


def test_deaths_that_a_checker_explains_never_end_the_rest() -> None:
    def dies(*findings: Finding) -> Callable[[Call], Answer]:
        return lambda _: Answer(Status.CUDA_ERROR, "illegal address", findings=findings)

    for findings, ran in (((RACE,), 5), ((replace(RACE, kind="budget"),), 3), ((LEAK, LEFT), 3)):
        judged, sessions = run(dies(*findings), cases=numbered(5))
        assert len(sessions) == ran
        assert sum((case.message or "").startswith("not run") for case in judged.cases) == 5 - ran


def test_a_finding_that_another_case_shows_too_counts() -> None:
    def everywhere(call: Call) -> Answer:
        return replace(right(call), findings=(PAST,))

    judged, _ = run(everywhere, excuses={"case 1": EXCUSE})
    assert (judged.findings, judged.waived) == ((PAST,), {})


def test_an_access_outside_an_array_is_called_once_more_to_see_whether_its_index_overflows() -> None:
    overflow = Finding("index_overflow", "of_this_line", "ker", "k.cu", 5)
    taken = []

    def work(call: Call) -> Answer:
        taken.append(call.schedule)
        return replace(
            right(call), findings=(PAST, overflow) if call.schedule is Schedule.OVERFLOW else (PAST,)
        )

    judged, sessions = run(work)
    assert judged.findings == (PAST, overflow)
    assert not overflow.counts
    assert taken == [*[Schedule.PROGRAM] * 3, Schedule.OVERFLOW]
    assert [session.closed for session in sessions] == [True, True]


def test_wrong_numbers_are_never_excused() -> None:
    def wrong(call: Call) -> Answer:
        answer = right(call)
        return replace(answer, arrays={**answer.arrays, "y": answer.arrays["x"]}, findings=(PAST,))

    judged, _ = run(wrong, cases=CASES[1:2], excuses={"case 1": EXCUSE})
    assert judged.cases[0].verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("kinds", "counting", "waived"),
    [({"global_oob"}, (), {OVERRUN: "the starter does"}), (set(), (OVERRUN,), {})],
)
def test_an_overrun_may_be_excused(
    kinds: set[str], counting: tuple[Finding, ...], waived: dict[Finding, str]
) -> None:
    excuses = {case.name: replace(EXCUSE, kinds=frozenset(kinds | {"invalid_launch"})) for case in CASES}
    judged, _ = run(past, excuses=excuses)
    assert [case.verdict for case in judged.cases] == [Verdict.PASS] * 3
    assert (judged.findings, judged.waived) == (counting, waived)


def test_guard_zones_say_what_the_simulator_did_not_see() -> None:
    on_gpu, (clean, _), (seeing, _) = (
        run(past)[0],
        run(right),
        run(lambda call: replace(right(call), findings=(PAST,))),
    )
    assert correctness.overrun_beside(clean, on_gpu).findings == (OVERRUN,)
    assert correctness.overrun_beside(seeing, on_gpu).findings == (PAST,)


def test_an_excluded_case_is_not_run() -> None:
    judged, sessions = run(right, excuses={"case 1": correctness.Excuse(frozenset(), "no bucket")})
    assert [case.waived for case in judged.cases] == ["", "no bucket", ""]
    assert len(sessions[0].calls) == 2


def test_a_case_of_no_known_cause_is_called_again_and_what_that_ends_is_opened_anew() -> None:
    noise = iter(np.random.default_rng(1).normal(size=(6, 4)).astype(np.float32))

    def changing(call: Call) -> Answer:
        return Answer(Status.RETURNED, arrays={**right(call).arrays, "y": next(noise)})

    judged, sessions = run(changing)
    assert len(sessions[0].calls) == 6
    assert all("two calls with the same input" in (case.diagnosis or "") for case in judged.cases)
    answers = iter((changing, lambda _: Answer(Status.CRASHED, message="killed"), right, right))
    noise = iter(np.ones((1, 4), np.float32) * np.array([3, 1, 9, 7], np.float32))
    judged, sessions = run(lambda call: next(answers)(call))  # noqa: PLW0108 - another one each time
    assert [case.verdict for case in judged.cases] == [Verdict.FAIL, Verdict.PASS, Verdict.PASS]
    assert len(sessions) == 2
