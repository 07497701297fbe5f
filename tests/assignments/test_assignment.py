from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from grader.assignments.assignment import AssignmentError, available, load, read
from grader.problems import load_all

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """
id = "small"
title = "Small"
[group_points]
"memory and concurrency" = 3.0
[limits]
processes = 8
[[problems]]
id = "softmax_forward"
title = "Softmax"
correctness = 12.0
performance = 8
target = 6.5
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "small.toml"
    path.write_text(text)
    return path


def test_the_first_assignment_is_worth_100_points() -> None:
    assignment = load("llm_systems_3")
    assert sum(problem.possible for problem in assignment.problems) == 100
    assert {problem.id: problem.target for problem in assignment.problems} == {
        "softmax_forward": 6.5,
        "softmax_backward": 0.5,
        "layernorm_forward": 15.8,
        "layernorm_backward": 3.7,
        "transformer": 1.1,
    }
    host = [problem.with_host_pointers().target for problem in assignment.problems]
    assert host == [4.0, 0.5, 4.5, 3.7, 1.1]
    assert all(problem.graded for problem in assignment.problems)
    assert assignment.limits.compile_seconds == 180
    assert assignment.limits.processes == 64


def test_every_shipped_assignment_loads() -> None:
    assert available()
    for assignment_id in available():
        assert load(assignment_id).id == assignment_id


def test_defaults_fill_the_limits_that_are_not_written(tmp_path: Path) -> None:
    assignment = read(written(tmp_path, TEXT))
    assert assignment.limits.processes == 8
    assert assignment.limits.run_seconds_sim == 60


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "target = 6.5",
            "target = 6.5\ntagret = 2.0",
            r"unknown key 'problems\[0\].tagret'. Did you mean 'target'",
        ),
        ("processes = 8", "proceses = 8", r"unknown key 'limits.proceses'. Did you mean 'processes'"),
        ('title = "Small"', 'title = "Small"\nlimit = 3', r"unknown key 'limit'. Did you mean 'limits'"),
        ("target = 6.5", "", r"missing key 'problems\[0\].target'"),
        ("target = 6.5", "target = 0.0", r"problems\[0\].target: .*greater than 0"),
        ("target = 6.5", "target = inf", r"problems\[0\].target: .*finite"),
        (
            "correctness = 12.0",
            "correctness = 2.0",
            "group_points sum to 3, more than the 2 correctness points",
        ),
        ("processes = 8", 'processes = "8"', "limits.processes: .*integer"),
        ('id = "small"', 'id = "other"', "id is 'other'; it must be the file's name"),
        ("[limits]", "[limits", "not TOML"),
        (
            "[group_points]",
            'allowed_imports = ["("]\n[group_points]',
            r"small.toml: allowed_imports: '\(' is no regular",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_the_key_and_the_remedy(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(AssignmentError, match=message):
        read(written(tmp_path, TEXT.replace(old, new, 1)))


WAIVER = """
[[waivers]]
problem = "softmax_forward"
reason = "no bucket"
above = { to_len = 1024 }
not_multiple_of = { rows = 4 }
contents = ["null mask"]
"""


def test_a_waiver_covers_the_cases_that_meet_a_condition(tmp_path: Path) -> None:
    (waiver,) = read(written(tmp_path, TEXT + WAIVER)).waivers
    assert waiver.covers({"to_len": 1025}, "normal")
    assert waiver.covers({"rows": 5}, "normal")
    assert waiver.covers({}, "null mask")
    assert not waiver.covers({"to_len": 1024, "rows": 8}, "normal")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rows = 4", "rows = 0", r"waivers\[0\].not_multiple_of.rows: .*greater than 0"),
        (WAIVER[WAIVER.index("above") :], "", r"waivers\[0\]: no condition\. Name some of: not_multiple_of"),
    ],
)
def test_a_waiver_that_could_cover_nothing_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(AssignmentError, match=message):
        read(written(tmp_path, TEXT + WAIVER.replace(old, new)))


def test_a_file_may_begin_as_some_editors_mark_utf_8(tmp_path: Path) -> None:
    assert read(written(tmp_path, "\ufeff" + TEXT.lstrip())) == read(written(tmp_path, TEXT))


def test_a_waiver_of_no_problem_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssignmentError, match=r"a waiver names 'softmax_forwards'\. Did you mean"):
        read(written(tmp_path, TEXT + WAIVER.replace("softmax_forward", "softmax_forwards")))


def test_every_shipped_waiver_covers_some_cases_but_not_all() -> None:
    for waiver in load("handout").waivers:
        cases = load_all()[waiver.problem].cases(1)
        covered = [waiver.covers(case.sizes, case.distribution) for case in cases]
        assert any(covered)
        assert not all(covered)
        if waiver.contents:
            assert set(waiver.contents) <= {case.distribution for case in cases}


def test_the_same_problem_twice_is_refused(tmp_path: Path) -> None:
    table = TEXT[TEXT.index("[[problems]]") :]
    with pytest.raises(AssignmentError, match="problem 'softmax_forward' stands twice"):
        read(written(tmp_path, TEXT + table))


def test_an_unknown_assignment_or_problem_names_the_nearest() -> None:
    with pytest.raises(AssignmentError, match="Did you mean 'llm_systems_3'"):
        load("llm_system_3")
    with pytest.raises(AssignmentError, match="Did you mean 'softmax_forward'"):
        load("llm_systems_3").problem("softmax_forwards")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(AssignmentError, match=r"small\.toml: cannot be read: No such file"):
        read(tmp_path / "small.toml")
