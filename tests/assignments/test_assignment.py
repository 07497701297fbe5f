from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from first_assignment import KERNELS

from grader.assignments.assignment import FILE, available, default, load, read
from grader.assignments.rules import AssignmentError

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
    (folder / FILE).write_text(text)
    return folder


def test_the_first_assignment_is_worth_100_points() -> None:
    assignment = load("llm_systems_3")
    assert sum(problem.possible for problem in assignment.rules.problems) == 100
    assert {problem.id: problem.target for problem in assignment.rules.problems} == {
        "softmax_forward": 6.5,
        "softmax_backward": 0.5,
        "layernorm_forward": 15.8,
        "layernorm_backward": 3.7,
        "transformer": 1.1,
    }
    host = [problem.with_host_pointers().target for problem in assignment.rules.problems]
    assert host == [4.0, 0.5, 4.5, 3.7, 1.1]
    assert all(problem.graded for problem in assignment.rules.problems)
    assert assignment.rules.limits.compile_seconds == 180
    assert assignment.rules.limits.processes == 64


def test_every_shipped_assignment_loads() -> None:
    assert available()
    for assignment_id in available():
        assert load(assignment_id).id == assignment_id


def test_defaults_fill_the_limits_that_are_not_written(tmp_path: Path) -> None:
    assignment = read(written(tmp_path, TEXT))
    assert assignment.rules.limits.processes == 8
    assert assignment.rules.limits.run_seconds_sim == 60


def test_a_problem_may_name_its_own_languages(tmp_path: Path) -> None:
    second = TEXT[TEXT.index("[[problems]]") :].replace("softmax_forward", "softmax_backward")
    text = f'languages = ["cuda", "triton"]{TEXT}{second}languages = ["cuda"]\n'
    rules = read(written(tmp_path, text)).rules
    assert rules.languages_of("softmax_forward") == ("cuda", "triton")
    assert rules.languages_of("softmax_backward") == ("cuda",)
    assert rules.every_language == ("cuda", "triton")
    swapped = text.replace('languages = ["cuda", "triton"]', "") + second.replace("backward", "third")
    rules = read(written(tmp_path, swapped + 'languages = ["triton"]\n')).rules
    assert rules.languages_of("softmax_forward") == ("cuda",)
    assert rules.every_language == ("cuda", "triton")


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
        (
            "target = 6.5",
            "target = 6.5\nsteps = [{ at = 2.0, point = 3.0 }]",
            r"unknown key 'problems\[0\].steps\[0\].point'. Did you mean 'points'",
        ),
        (
            "target = 6.5",
            "target = 6.5\nsteps = [{ at = 2.0, points = 3.0 }, { at = 1.0, points = 4.0 }]",
            r"problems\[0\]: 3 points at 2 stand before 4 at 1\. Each step has to be faster and worth more",
        ),
        (
            "target = 6.5",
            "target = 6.5\nsteps = [{ at = 6.5, points = 3.0 }]",
            r"3 points at 6\.5 stand before 8 at 6\.5\. .* the target \(all 8 at 6\.5\)",
        ),
        (
            "target = 6.5",
            "target = 6.5\nsteps = [{ at = 2.0, points = 8.0 }]",
            r"8 points at 2 stand before 8 at 6\.5",
        ),
        ("target = 6.5", "", r"missing key 'problems\[0\].target'"),
        (
            "target = 6.5",
            'target = 6.5\nlanguages = ["cuda", "hip"]',
            r"problems\[0\]\.languages\[1\]: .*'cuda', 'triton', 'load_inline', 'cupy' or 'nvrtc'",
        ),
        (
            "target = 6.5",
            "target = 6.5\nlanguage_targets = { triton = 3.0 }",
            "language_targets of 'softmax_forward' names triton, in which it cannot be answered: .* are cuda",
        ),
        (
            "target = 6.5",
            "target = 6.5\nlanguage_targets = { cuda = 0.0 }",
            r"problems\[0\]\.language_targets\.cuda: .*greater than 0",
        ),
        ("target = 6.5", "target = 0.0", r"problems\[0\].target: .*greater than 0"),
        ("target = 6.5", "target = inf", r"problems\[0\].target: .*finite"),
        (
            "correctness = 12.0",
            "correctness = 2.0",
            "group_points sum to 3, more than the 2 correctness points",
        ),
        (
            "[group_points]",
            "[deadline]\ndue = 2026-12-01T23:59:00\nper_day = 0.1\n[group_points]",
            r"deadline\.due: it has no distance from UTC\. Write it as 2026-12-01T23:59:00\+01:00",
        ),
        (
            "[group_points]",
            "[deadline]\ndue = 2026-12-01T23:59:00Z\nper_day = 0.5\nmost = 0.2\n[group_points]",
            r"deadline: most \(0\.2\) is less than what one day takes off \(0\.5\)",
        ),
        (
            "[group_points]",
            "[deadline]\ndue = 2026-12-01T23:59:00Z\nper_day = 10\n[group_points]",
            r"deadline\.per_day: .*less than or equal to 1",
        ),
        (
            "[group_points]",
            "[deadline]\ndue = 2026-12-01T23:59:00Z\nperday = 0.1\n[group_points]",
            r"unknown key 'deadline\.perday'\. Did you mean 'per_day'",
        ),
        (
            "[group_points]",
            '[hidden]\ngroups = ["short rows"]\n[group_points]',
            r"missing key 'hidden\.until'",
        ),
        (
            "[group_points]",
            "[hidden]\ngroups = []\nuntil = 2026-12-01T23:59:00Z\n[group_points]",
            r"hidden\.groups: .*at least 1 item",
        ),
        ("[group_points]", 'attempts = "first"\n[group_points]', "attempts: .*'last' or 'best'"),
        ("processes = 8", 'processes = "8"', "limits.processes: .*integer"),
        ("[limits]", "[limits", "not TOML"),
        (
            "[group_points]",
            'allowed_imports = ["("]\n[group_points]',
            r"assignment.toml: allowed_imports: '\(' is no regular",
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
    (waiver,) = read(written(tmp_path, TEXT + WAIVER)).rules.waivers
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
    marked = read(written(tmp_path, "\ufeff" + TEXT.lstrip()))
    assert marked.rules == read(written(tmp_path, TEXT)).rules


def test_a_waiver_of_no_problem_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssignmentError, match=r"a waiver names 'softmax_forwards'\. Did you mean"):
        read(written(tmp_path, TEXT + WAIVER.replace("softmax_forward", "softmax_forwards")))


def test_every_shipped_waiver_covers_some_cases_but_not_all() -> None:
    for waiver in load("handout").rules.waivers:
        cases = KERNELS[waiver.problem].cases(1)
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
        load("llm_systems_3").rules.problem("softmax_forwards")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(AssignmentError, match=r"assignment\.toml: cannot be read: No such file"):
        read(tmp_path)


def test_an_assignment_may_lie_anywhere(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    assert load(str(written(own, TEXT))).id == "small"


def test_a_folder_without_rules_is_no_assignment(tmp_path: Path) -> None:
    with pytest.raises(AssignmentError, match=r"is no assignment: it has no file assignment\.toml"):
        load(str(tmp_path))


def test_the_default_is_an_installed_one() -> None:
    assert default() in available()


EXTENDING = """
id = "own"
title = "Own"
extends = "llm_systems_3"
[limits]
processes = 8
[[problems]]
id = "layernorm_forward"
target = 2.0
[[problems]]
id = "softmax_forward"
"""


def test_what_an_assignment_leaves_out_is_as_in_the_one_that_it_extends(tmp_path: Path) -> None:
    base, own = load("llm_systems_3"), read(written(tmp_path, EXTENDING))
    assert [entry.id for entry in own.rules.problems] == ["layernorm_forward", "softmax_forward"]
    assert own.rules.problem("layernorm_forward").target == 2.0
    assert own.rules.problem("layernorm_forward").host_target == 4.5
    assert own.rules.problem("softmax_forward") == base.rules.problem("softmax_forward")
    assert (own.rules.limits.processes, own.rules.limits.run_seconds_gpu) == (8, 10)
    assert (own.template, own.reference, own.modules) == (base.template, base.reference, base.modules)
    assert own.reference_in("triton") == base.reference_in("triton")
    assert own.problems.keys() == {"layernorm_forward", "softmax_forward"}


def test_of_each_language_its_own_folders_come_before_those_of_the_base(tmp_path: Path) -> None:
    own = read(written(tmp_path, EXTENDING))
    assert own.reference_in("other") == own.folder / "reference_other"
    (tmp_path / "reference_triton").mkdir()
    assert own.reference_in("triton") == own.folder / "reference_triton"


def test_a_problem_of_its_own_comes_before_that_of_the_base(tmp_path: Path) -> None:
    (tmp_path / "problems").mkdir()
    base = load("llm_systems_3")
    text = (base.modules[0] / "softmax_backward.py").read_text()
    (tmp_path / "problems" / "softmax_forward.py").write_text(
        text.replace('id="softmax_backward"', 'id="softmax_forward"')
    )
    own = read(written(tmp_path, EXTENDING))
    assert own.problems["softmax_forward"].entry_point == "launch_attn_softmax_bw"


def test_an_assignment_may_extend_one_in_another_folder(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "own").mkdir()
    base = read(written(tmp_path / "base", EXTENDING.replace('"own"', '"base"')))
    (tmp_path / "base" / "reference").mkdir()
    own = read(written(tmp_path / "own", EXTENDING.replace("llm_systems_3", "../base")))
    assert own.bases == (base.folder, *base.bases)
    assert own.reference == tmp_path / "base" / "reference"
    assert own.rules.problem("layernorm_forward").host_target == 4.5


def test_an_unknown_base_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssignmentError, match=r"extends: there is no assignment 'llm_systems_33'\. Did you"):
        read(written(tmp_path, EXTENDING.replace("llm_systems_3", "llm_systems_33")))


def test_another_deadline_grades_nothing_again(tmp_path: Path) -> None:
    before = read(written(tmp_path, TEXT)).sha256
    deadline = 'attempts = "best"\n[deadline]\ndue = 2026-12-01T23:59:00Z\nper_day = 0.1\n[group_points]'
    after = read(written(tmp_path, TEXT.replace("[group_points]", deadline)))
    assert after.rules.deadline is not None
    assert after.rules.deadline.due.isoformat() == "2026-12-01T23:59:00+00:00"
    assert after.sha256 == before


@pytest.mark.parametrize(
    ("file", "another"),
    [
        ("problems/row.py", True),
        ("student_template/row.cu", True),
        ("assignment.toml", True),
        ("mutants/table.py", False),
        ("problems/__pycache__/row.pyc", False),
    ],
)
def test_what_decides_a_verdict_makes_another_assignment(tmp_path: Path, file: str, another: bool) -> None:
    written(tmp_path, TEXT)
    before = read(tmp_path).sha256
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TEXT.replace("6.5", "6.0"))
    assert (read(tmp_path).sha256 != before) == another
