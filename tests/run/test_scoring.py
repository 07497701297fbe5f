from __future__ import annotations

import pytest

from grader.assignments.rules import Demand, ProblemPoints, Step
from grader.problems.problem import MEMORY_GROUP
from grader.records.gaps import GapKind
from grader.records.record import CaseResult, DemandResult, GapRecord, OutputResult, PerformanceResult, Points
from grader.records.verdict import Verdict
from grader.run.scoring import ProblemScore, memory_verdict, score_problem, score_without_cases, total

ENTRY = ProblemPoints(id="p", title="P", correctness=12.0, performance=8.0, target=4.0)
GROUPS = ("short rows", "long rows", "future mask")
NAMED = {MEMORY_GROUP: 3.0}


def case(group: str, verdict: Verdict = Verdict.PASS) -> CaseResult:
    return CaseResult(name=f"{group} {verdict}", group=group, verdict=verdict)


def speed(verdict: Verdict, speedup: float | None = None) -> PerformanceResult:
    return PerformanceResult(verdict=verdict, target=4.0, speedup=speedup)


NO_GPU = speed(Verdict.NOT_MEASURED)
ALL_RIGHT = [case(group) for group in GROUPS]


def score(
    cases: list[CaseResult] = ALL_RIGHT,
    memory: Verdict = Verdict.PASS,
    performance: PerformanceResult = NO_GPU,
) -> ProblemScore:
    return score_problem(ENTRY, NAMED, GROUPS, cases, memory, performance)


def points(earned: float, decided: float, possible: float = 20.0) -> Points:
    return Points(earned=earned, decided=decided, possible=possible)


def test_waived_cases_do_not_count_and_a_group_of_them_leaves_its_points_to_the_rest() -> None:
    waived = [
        case(group, Verdict.NOT_MEASURED).model_copy(update={"waived": "no bucket"}) for group in GROUPS[1:]
    ]
    result = score([*ALL_RIGHT[:2], *waived])
    assert result.points == points(12, 12)
    assert {group.name: group.possible for group in result.groups} == {
        "short rows": 4.5,
        "long rows": 4.5,
        MEMORY_GROUP: 3,
    }


def output(name: str, *, bad: int = 0) -> OutputResult:
    return OutputResult(name=name, max_error=0, allowed=1, bad=bad, total=4, first_bad=[])


@pytest.mark.parametrize(
    ("outputs", "message", "kept"),
    [
        ([[0, 1, 0]], "", 2),
        ([[0, 1, 0], [1, 0, 0]], "", 1),
        ([[0, 0, 0], [0, 1, 0]], "", 2),
        ([[1, 1, 1]], "", 0),
        ([[0, 1, 0]], "x must not change, but 3 of its elements did", 0),
        ([[0, 1, 0], []], "the launcher ended with exit code 1", 0),
        ([[]], "the launcher ended with exit code 1", 0),
    ],
)
def test_outputs_that_are_right_keep_their_part_where_the_assignment_says_so(
    outputs: list[list[int]], message: str, kept: int
) -> None:
    entry = ENTRY.model_copy(update={"per_output": True})
    cases = [
        case(GROUPS[0], Verdict.FAIL if any(bad) or not bad else Verdict.PASS).model_copy(
            update={
                "outputs": [output(name, bad=count) for name, count in zip("abc", bad, strict=bool(bad))],
                "message": message,
            }
        )
        for bad in outputs
    ]
    everything = [*cases, *ALL_RIGHT[1:]]
    result = score_problem(entry, NAMED, GROUPS, everything, Verdict.PASS, NO_GPU)
    assert (result.verdict, result.points) == (Verdict.FAIL, points(9 + kept, 12))
    assert (result.groups[0].verdict, result.groups[0].earned) == (Verdict.FAIL, kept)
    assert score(everything).points == points(9, 12), "all or nothing, if the assignment says nothing"


def test_without_a_gpu_everything_right_is_full_marks_of_what_could_be_decided() -> None:
    result = score()
    assert result.points == points(12, 12)
    assert result.verdict is Verdict.PASS
    assert {group.name: group.possible for group in result.groups} == {
        "short rows": 3,
        "long rows": 3,
        "future mask": 3,
        MEMORY_GROUP: 3,
    }


def test_one_wrong_case_costs_its_group_and_no_other() -> None:
    result = score([*ALL_RIGHT, case("long rows", Verdict.FAIL)])
    assert result.points == points(9, 12)
    assert result.verdict is Verdict.FAIL
    assert [group.name for group in result.groups if not group.earned] == ["long rows"]


def test_a_finding_costs_the_memory_group_and_the_speed_even_when_the_numbers_are_right() -> None:
    result = score(memory=Verdict.FAIL, performance=speed(Verdict.PASS, 5.0))
    assert result.points == points(9, 20)
    assert result.verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("verdict", "speedup", "earned"),
    [
        (Verdict.PASS, 5.0, 8.0),
        (Verdict.AMBIGUOUS, 3.99, 8.0),
        (Verdict.FAIL, 3.0, 6.0),
        (Verdict.FAIL, None, 0.0),
    ],
)
def test_speed_earns_in_proportion_up_to_the_target(
    verdict: Verdict, speedup: float | None, earned: float
) -> None:
    result = score(performance=speed(verdict, speedup))
    assert result.points == points(12 + earned, 20)
    assert result.verdict is (Verdict.FAIL if verdict is Verdict.FAIL else Verdict.PASS)


STEPS = (Step(at=1.0, points=2.0), Step(at=2.0, points=5.0))


@pytest.mark.parametrize(
    ("verdict", "speedup", "high", "earned"),
    [
        (Verdict.FAIL, 0.9, 0.95, 0.0),
        (Verdict.FAIL, 1.0, 1.1, 2.0),
        (Verdict.FAIL, 1.9, 1.99, 2.0),
        (Verdict.FAIL, 1.9, 2.1, 5.0),
        (Verdict.FAIL, 3.9, 3.95, 5.0),
        (Verdict.AMBIGUOUS, 3.9, 4.1, 8.0),
        (Verdict.PASS, 9.0, 9.1, 8.0),
    ],
)
def test_steps_earn_what_the_fastest_one_within_the_interval_is_worth(
    verdict: Verdict, speedup: float, high: float, earned: float
) -> None:
    entry = ENTRY.model_copy(update={"steps": STEPS})
    timed = speed(verdict, speedup).model_copy(update={"interval": (speedup - 0.1, high)})
    result = score_problem(entry, NAMED, GROUPS, ALL_RIGHT, Verdict.PASS, timed)
    assert result.points == points(12 + earned, 20)
    wrong = [*ALL_RIGHT, case("long rows", Verdict.FAIL)]
    assert score_problem(entry, NAMED, GROUPS, wrong, Verdict.PASS, timed).points == points(9, 20)


def test_steps_are_the_same_parts_of_a_target_for_host_pointers() -> None:
    entry = ENTRY.model_copy(update={"steps": STEPS, "host_target": 2.0})
    assert [(step.at, step.points) for step in entry.with_host_pointers().steps] == [(0.5, 2), (1, 5)]


def test_a_language_may_have_a_target_of_its_own() -> None:
    entry = ENTRY.model_copy(update={"steps": STEPS, "language_targets": {"triton": 2.0}})
    there = entry.in_language("triton")
    assert (there.target, [(step.at, step.points) for step in there.steps]) == (2, [(0.5, 2), (1, 5)])
    assert entry.in_language("cuda") == entry
    assert there.with_host_pointers() == there
    assert there.model_copy(update={"host_target": 1.0}).with_host_pointers().target == 1


def test_a_kind_of_gpu_may_have_a_target_of_its_own() -> None:
    others = {"host_target": 2.0, "language_targets": {"triton": 3.0}}
    entry = ENTRY.model_copy(update={"steps": STEPS, "gpu_targets": {"H100": 2.0, "A10": 1.0}, **others})
    there = entry.on_gpu("NVIDIA H100 80GB HBM3")
    factor = 2 / ENTRY.target
    assert (there.target, [(step.at, step.points) for step in there.steps]) == (2, [(0.5, 2), (1, 5)])
    assert there.with_host_pointers().target == 2 * factor
    assert there.in_language("triton").target == 3 * factor
    assert entry.on_gpu("NVIDIA A100-SXM4-80GB") == entry
    assert entry.on_gpu("NVIDIA h100-PCIe").target == 2


def demand(verdict: Verdict, worth: float = 2.0) -> DemandResult:
    return DemandResult(measure="code", verdict=verdict, most=1.5, points=worth)


@pytest.mark.parametrize(
    ("met", "verdict", "earned", "decided"),
    [
        ((Verdict.PASS, Verdict.PASS), Verdict.PASS, 16, 16),
        ((Verdict.PASS, Verdict.FAIL), Verdict.FAIL, 14, 16),
        ((Verdict.PASS, Verdict.NOT_MEASURED), Verdict.PASS, 14, 14),
        ((Verdict.PASS, Verdict.INFRA_ERROR), Verdict.INFRA_ERROR, 14, 14),
    ],
)
def test_demands_earn_their_points_once_every_case_is_right(
    met: tuple[Verdict, ...], verdict: Verdict, earned: float, decided: float
) -> None:
    asked = tuple(Demand(measure="code", most=1.5, points=2.0) for _ in met)
    entry = ENTRY.model_copy(update={"performance": 4.0, "demands": asked})
    found = [demand(one) for one in met]
    result = score_problem(entry, NAMED, GROUPS, ALL_RIGHT, Verdict.PASS, NO_GPU, found)
    assert (result.verdict, result.points) == (verdict, points(earned, decided))
    wrong = [*ALL_RIGHT, case("long rows", Verdict.FAIL)]
    result = score_problem(entry, NAMED, GROUPS, wrong, Verdict.PASS, NO_GPU, found)
    assert result.points == points(9, decided)


def test_speed_without_correctness_earns_nothing() -> None:
    assert score(
        [*ALL_RIGHT, case("long rows", Verdict.FAIL)], performance=speed(Verdict.PASS, 9.0)
    ).points == points(9, 20)


@pytest.mark.parametrize("fault", [Verdict.INFRA_ERROR, Verdict.NOT_MEASURED])
def test_a_fault_of_the_machine_leaves_points_undecided_and_never_costs_them(fault: Verdict) -> None:
    result = score([*ALL_RIGHT, case("long rows", fault)])
    assert result.points == points(9, 9)
    assert score(performance=speed(fault)).points == points(12, 12)


def test_a_machine_fault_among_the_cases_leaves_the_speed_undecided_too() -> None:
    result = score([*ALL_RIGHT, case("long rows", Verdict.INFRA_ERROR)], performance=speed(Verdict.PASS, 5.0))
    assert result.points == points(9, 9)
    assert result.verdict is Verdict.INFRA_ERROR


def lacking(group: str) -> CaseResult:
    """A case that reached an instruction that the simulator does not know."""
    gap = GapRecord(kind=GapKind.INSTRUCTION, subject="tex.1d", feature="textures")
    return case(group, Verdict.NOT_MEASURED).model_copy(update={"gaps": [gap]})


def test_what_the_simulator_cannot_run_is_neither_a_pass_nor_a_zero() -> None:
    cases = [*ALL_RIGHT, lacking("long rows")]
    memory = memory_verdict(ENTRY, (), cases)
    result = score(cases, memory, performance=speed(Verdict.PASS, 5.0))
    assert (result.verdict, result.correctness) == (Verdict.NOT_MEASURED, Verdict.NOT_MEASURED)
    assert result.points == points(6, 6)
    nothing = [lacking(group) for group in GROUPS]
    assert score(nothing, memory_verdict(ENTRY, (), nothing)).points == points(0, 0)


def test_what_the_simulator_cannot_run_is_no_better_than_wrong_where_something_is_wrong() -> None:
    cases = [case("short rows", Verdict.FAIL), *ALL_RIGHT[1:], lacking("long rows")]
    result = score(cases, memory_verdict(ENTRY, (), cases))
    assert result.verdict is Verdict.FAIL
    assert result.points == points(3, 6)


def test_a_wrong_case_counts_although_the_machine_failed_in_the_same_group() -> None:
    result = score(
        [case("short rows", Verdict.INFRA_ERROR), case("short rows", Verdict.FAIL), *ALL_RIGHT[1:]]
    )
    assert result.points == points(9, 12)


def test_checkers_that_do_not_exist_on_the_device_do_not_hold_back_the_speed() -> None:
    result = score(memory=Verdict.NOT_MEASURED, performance=speed(Verdict.PASS, 5.0))
    assert result.points == points(17, 17)
    assert result.verdict is Verdict.PASS


@pytest.mark.parametrize("where", ["case", "speed"])
def test_untrusted_earns_nothing_anywhere(where: str) -> None:
    result = (
        score([*ALL_RIGHT, case("long rows", Verdict.UNTRUSTED)])
        if where == "case"
        else score(performance=speed(Verdict.UNTRUSTED))
    )
    assert result.points == points(0, 20)
    assert result.verdict is Verdict.UNTRUSTED


def test_a_problem_that_did_not_build_earns_nothing_and_one_not_graded_yet_loses_nothing() -> None:
    assert score_without_cases(ENTRY, NAMED, GROUPS, Verdict.FAIL).points == points(0, 12)
    assert score_without_cases(ENTRY, NAMED, GROUPS, Verdict.FAIL, Verdict.FAIL).points == points(0, 20)
    undecided = score_without_cases(ENTRY, NAMED, (), Verdict.NOT_MEASURED)
    assert undecided.points == points(0, 0)
    assert undecided.verdict is Verdict.NOT_MEASURED


def test_a_problem_without_known_groups_still_decides_all_its_points() -> None:
    assert score_without_cases(ENTRY, NAMED, (), Verdict.FAIL).points == points(0, 12)


def test_groups_that_are_all_worth_nothing_share_the_whole_equally() -> None:
    worthless = {MEMORY_GROUP: 0.0}
    assert score_without_cases(ENTRY, worthless, (), Verdict.NOT_MEASURED).points == points(0, 0)
    assert score_without_cases(ENTRY, worthless, (), Verdict.FAIL).groups[0].possible == 12


def test_shares_that_are_no_round_numbers_add_up() -> None:
    groups = tuple(f"group {number}" for number in range(7))
    result = score_problem(ENTRY, NAMED, groups, [case(group) for group in groups], Verdict.PASS, NO_GPU)
    assert result.points == points(12, 12)
    assert result.groups[0].possible == 1.29


def test_a_lock_without_a_fence_costs_nothing() -> None:
    assert memory_verdict(ENTRY, ["unfenced_lock"], ALL_RIGHT) is Verdict.PASS
    assert memory_verdict(ENTRY, ["unfenced_lock", "race_global"], ALL_RIGHT) is Verdict.FAIL
    assert memory_verdict(ENTRY, ["race_shared"], ALL_RIGHT) is Verdict.FAIL


def test_a_kernel_that_does_not_start_costs_the_groups_of_its_cases_and_not_the_memory_group_as_well() -> (
    None
):
    kinds = ["invalid_launch", "unchecked_error"]
    cases = [*ALL_RIGHT, case("long rows", Verdict.FAIL)]
    assert memory_verdict(ENTRY, kinds, cases) is Verdict.PASS
    assert score(cases, memory_verdict(ENTRY, kinds, cases)).points == points(9, 12)
    assert memory_verdict(ENTRY, [*kinds, "memcpy_overflow"], cases) is Verdict.FAIL


def test_code_that_does_nothing_earns_nothing_for_doing_it_without_a_race() -> None:
    wrong = [case(group, Verdict.FAIL) for group in GROUPS]
    assert memory_verdict(ENTRY, [], wrong) is Verdict.FAIL
    assert score(wrong, memory_verdict(ENTRY, [], wrong)).points == points(0, 12)


def test_the_checkers_decide_where_an_output_is_right_and_outputs_share_the_points() -> None:
    entry = ENTRY.model_copy(update={"per_output": True})
    for bad, verdict in ((0, Verdict.PASS), (1, Verdict.FAIL)):
        outputs = [output("means", bad=bad), output("vars", bad=1)]
        wrong = [case(group, Verdict.FAIL).model_copy(update={"outputs": outputs}) for group in GROUPS]
        assert memory_verdict(entry, [], wrong) is verdict
        assert memory_verdict(entry, ["race_shared"], wrong) is Verdict.FAIL
        assert memory_verdict(ENTRY, [], wrong) is Verdict.FAIL


def test_the_score_of_a_run_is_the_sum_of_its_problems() -> None:
    assert total([points(12, 12), points(9.29, 20), points(0, 0)]) == points(21.29, 32, 60)
    assert total([]) == points(0, 0, 0)


def test_right_outputs_without_elements_say_nothing_of_memory() -> None:
    nothing = OutputResult(
        name="out", max_error=0, allowed=0, bad=0, total=0, nan=0, infinite=0, first_bad=[]
    )
    empty = CaseResult(name="0", group="g", verdict=Verdict.PASS, outputs=[nothing])
    wrong = CaseResult(name="1", group="g", verdict=Verdict.FAIL)
    assert memory_verdict(ENTRY, [], [empty, wrong]) is Verdict.FAIL
    right = empty.model_copy(update={"outputs": [nothing.model_copy(update={"total": 1})]})
    assert memory_verdict(ENTRY, [], [right, wrong]) is Verdict.PASS


@pytest.mark.parametrize(
    ("verdict", "earned", "decided"),
    [(Verdict.PASS, 12, 12), (Verdict.FAIL, 0, 20), (Verdict.NOT_MEASURED, 12, 12)],
)
def test_where_a_required_demand_is_not_met_the_problem_earns_nothing(
    verdict: Verdict, earned: float, decided: float
) -> None:
    found = DemandResult(measure="shared", verdict=verdict, least=1, points=0, required=True)
    result = score_problem(ENTRY, NAMED, GROUPS, ALL_RIGHT, Verdict.PASS, NO_GPU, [found])
    assert (result.points.earned, result.points.decided) == (earned, decided)
    assert result.verdict is (Verdict.FAIL if verdict is Verdict.FAIL else Verdict.PASS)
