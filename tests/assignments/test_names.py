from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from assignments.own_assignment import write

from grader.assignments.assignment import Assignment, available, load
from grader.assignments.names import check, try_out
from grader.assignments.rules import AssignmentError, Demand, Hidden, ProblemPoints, Waiver

if TYPE_CHECKING:
    from pathlib import Path

HANDOUT = load("handout")


def with_rules(**changed: object) -> Assignment:
    return replace(HANDOUT, rules=HANDOUT.rules.model_copy(update=changed))


def test_every_shipped_assignment_names_what_is_there() -> None:
    for assignment_id in available():
        check(load(assignment_id))


def test_a_problem_that_nobody_can_grade_is_refused_unless_it_is_not_to_be_graded() -> None:
    later = ProblemPoints(id="softmax_foward", title="", correctness=12, performance=8, target=1)
    with pytest.raises(
        AssignmentError,
        match=r"handout/assignment\.toml: there is no graded problem 'softmax_foward'. "
        r"Did you mean 'softmax_forward'\?",
    ):
        check(with_rules(problems=(later,)))
    check(with_rules(problems=(*HANDOUT.rules.problems, later.model_copy(update={"graded": False}))))


@pytest.mark.parametrize(
    ("name", "said"),
    [("short row", "Did you mean 'short rows'"), ("memory and concurrency", "Valid: ")],
)
def test_a_group_that_has_no_cases_to_hide_is_refused(name: str, said: str) -> None:
    until = datetime(2026, 12, 1, tzinfo=UTC)
    check(with_rules(hidden=Hidden(groups=("short rows",), until=until)))
    with pytest.raises(AssignmentError, match=f"there is no group of cases '{name}'. {said}"):
        check(with_rules(hidden=Hidden(groups=(name,), until=until)))


def test_a_case_group_that_no_problem_has_is_refused() -> None:
    points = {"memory and concurency": 3.0, "short rows": 1.0}
    with pytest.raises(
        AssignmentError,
        match=r"no case group 'memory and concurency'. Did you mean 'memory and concurrency'\?$",
    ):
        check(with_rules(group_points=points))


def test_a_demand_that_nothing_can_meet_is_refused() -> None:
    code, spread = (Demand(measure=name, most=1.5, points=2) for name in ("code", "spread"))
    problems = {entry.id: entry for entry in HANDOUT.rules.problems}
    asked = problems["softmax_forward"].model_copy(update={"demands": (code, spread)})
    check(with_rules(problems=(asked,)))
    norm = load("rmsnorm")
    asked = norm.rules.problem("rmsnorm_module").model_copy(update={"demands": (code, spread)})
    said = r"rmsnorm_module has a demand of code .*; rmsnorm_module asks for a spread of speeds"
    with pytest.raises(AssignmentError, match=said):
        check(replace(norm, rules=norm.rules.model_copy(update={"problems": (asked,)})))


def test_languages_of_what_has_no_kernels_are_refused() -> None:
    norm = load("rmsnorm")
    kernel, module = (norm.rules.problem(name) for name in ("rmsnorm_forward", "rmsnorm_module"))
    own = [one.model_copy(update={"languages": ("cuda",)}) for one in (kernel, module)]
    check(replace(norm, rules=norm.rules.model_copy(update={"problems": (own[0], module)})))
    with pytest.raises(AssignmentError, match="rmsnorm_module names languages and is no kernel problem"):
        check(replace(norm, rules=norm.rules.model_copy(update={"problems": (kernel, own[1])})))


def test_a_waiver_of_sizes_and_values_that_no_case_has_is_refused() -> None:
    waiver = Waiver(
        problem="softmax_forward",
        reason="",
        above={"to_ln": 1024},
        not_multiple_of={"from_len": 4},
        contents=("null mask", "nul mask"),
    )
    with pytest.raises(
        AssignmentError,
        match=r"no size of softmax_forward's cases 'to_ln'. Did you mean 'to_len'\?; "
        r"there is no distribution of softmax_forward's cases 'nul mask'. Did you mean 'null mask'\?$",
    ):
        check(with_rules(waivers=(waiver,)))


def test_a_speedup_over_nothing_is_refused(tmp_path: Path) -> None:
    own = write(tmp_path)
    check(load(str(own)))
    module, rules = own / "problems" / "half_scale.py", own / "assignment.toml"
    module.write_text(module.read_text().replace("timing_cases=lambda seed: ()", "timing_cases=cases"))
    copied = tmp_path / "copied"
    own.rename(copied)  # the modules of a folder are loaded once
    with pytest.raises(AssignmentError, match="half_scale has timing cases and no unfused program: write it"):
        check(load(str(copied)))
    text = (copied / rules.name).read_text()
    measured = 'id = "half_scale"\nmeasure = "share_of_limit"'
    (copied / rules.name).write_text(text.replace('id = "half_scale"', measured))
    check(load(str(copied)))


def test_a_share_of_arithmetic_without_products_is_refused() -> None:
    entry = next(one for one in HANDOUT.rules.problems if one.id == "softmax_forward")
    asked = entry.model_copy(update={"measure": "share_of_arithmetic"})
    with pytest.raises(AssignmentError, match=r"softmax_forward: arithmetic sets a limit .* here are none"):
        check(with_rules(problems=(asked,)))


def test_a_formula_that_fails_in_a_case_is_told_with_its_line(tmp_path: Path) -> None:
    own = write(tmp_path)
    problem = own / "problems" / "half_scale.py"
    text = problem.read_text()
    problem.write_text(text.replace("def oracle(case, given):\n", "def oracle(case, given):\n    1 / 0\n"))
    assert text != problem.read_text()
    broken = load(str(own))
    check(broken)
    with pytest.raises(AssignmentError, match=r"problems/half_scale\.py:\d+: ZeroDivisionError: division"):
        try_out(broken)


def test_a_module_problem_in_a_language_that_is_not_python_is_refused() -> None:
    functions = load("tensor_functions")
    check(functions)
    rules = functions.rules.model_copy(update={"languages": ("cuda", "triton")})
    with pytest.raises(
        AssignmentError, match=r'row_softmax is a module problem.*say languages = \["triton"\]'
    ):
        check(replace(functions, rules=rules))
