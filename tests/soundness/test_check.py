"""The grader's example is sound; copies with one thing wrong are not, and the table says what."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from soundness.examples import example

from grader.assignments.assignment import read
from grader.assignments.rules import AssignmentError
from grader.cli.arguments import FaultError
from grader.cli.main import commands
from grader.records.record import PerformanceResult
from grader.records.verdict import Verdict
from grader.run.bench import Bench
from grader.soundness import check
from grader.soundness.check import Examination
from grader.soundness.kept import Kept
from grader.soundness.targets import target_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from grader.assignments.assignment import Assignment
    from grader.soundness.check import Row

NAME = "vector_add"
PROBLEM, TABLE, KERNEL = "problems/vector_add.py", "mutants/table.py", "reference/vector_add.cu"
HANDOUT, TEMPLATE, VARIANT = (
    "student_template/HANDOUT.md",
    "student_template/vector_add.cu",
    "variants/vector_add/grid_stride.cu",
)

IMPORTS = """from dataclasses import replace

from grader.problems.problem import Candidate, Expectation
"""
BY_HAND = """def too_wide(case, given):
    (exact,) = (one.candidates[0] for one in made.oracle(case, given).values())
    allowed = 2.0**-9 * (abs(1.7 * given.wide("x")) + abs(exact.expected))
    return {"z": Expectation((Candidate(exact.expected, allowed),))}


def wrong_program(case):
    *before, last = made.unfused(case)
    return (*before, replace(last, inputs=last.inputs[:1] * 2))


def with_a_gap(seed):
    return tuple(case for case in made.cases(seed) if case.sizes["n"].bit_length() != 14)


PROBLEM = replace(made, """

FEW_INSTRUCTIONS = """sim_instructions = 99
sim_instructions_per_element = 0
sim_instructions_per_row = 1
"""
BLOCK_EACH = """__global__ void ker_z(float* z, const float* x, const float* y, float a) {
  z[blockIdx.x] = a * x[blockIdx.x] + y[blockIdx.x];
}
"""


def replaced(what: str) -> tuple[str, str, str]:
    """The change by which the problem takes ``what`` in place of what follows from the formula."""
    end = 'timing=({"n": 1 << 16}, {"n": 1 << 25}),\n)\n'
    return (PROBLEM, end, f"{end}made = PROBLEM\n{IMPORTS}\n\n{BY_HAND}{what})\n")


def examined(assignment: Assignment) -> Examination:
    return Examination(assignment, [NAME], 1, "sim", "process", lambda _text: None, Bench(remembers=True))


def with_another_problem(folder: Path, *changes: tuple[str, str, str]) -> Assignment:
    """The example with a second problem, of which nothing is written yet."""
    text = (
        "\n\n[[problems]]\nid = 'other'\ntitle = 'Another'\ncorrectness = 1\nperformance = 1\ntarget = 1.5\n"
    )
    example(folder, *changes)
    rules, problem = folder / "assignment.toml", folder / PROBLEM
    rules.write_text(rules.read_text() + text)
    another = problem.read_text().replace('id="vector_add"', 'id="other"').replace("_add.cu", "_other.cu")
    (problem.parent / "other.py").write_text(another)
    return read(folder)


def references(one: Examination) -> Iterator[Row]:
    return check.reference(one, one.graded(one.assignment.reference, 1))


def target(one: Examination) -> Iterator[Row]:
    """Of a reference that a GPU found to be four times as fast as the baseline."""
    (entry,) = one.assignment.rules.problems
    timed = PerformanceResult(verdict=Verdict.FAIL, target=entry.target, speedup=4.0, interval=(3.9, 4.1))
    yield check.Row("target", *target_row(entry, timed, {}))


def variants(one: Examination) -> Iterator[Row]:
    return check.variants(one, {})


def test_a_new_assignment_is_complete_and_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mine"
    assert commands.main(["assignment", "new", str(folder)], standalone_mode=False) == 0
    for path in folder.rglob("*.*"):
        first = path.read_text().splitlines()[:2]
        assert len(first) == 2, path
        assert all(
            line.startswith(("# ", "// ", "<!-- ", '"""')) or path.suffix == ".py" for line in first
        ), path
    capsys.readouterr()
    options = ["--seeds", "2", "--sandbox", "process", "--device", "sim"]
    assert commands.main(["assignment", "check", str(folder), *options], standalone_mode=False) == 0
    *rows, last = capsys.readouterr().out.splitlines()
    assert last == "Sound, as far as it could be seen here."
    assert [row.split("  ")[0] for row in rows] == [*["ok"] * 11, "--"]
    assert "14 of 14 pairs of octaves have a case" in rows[3]
    assert "full marks, seeds: 2; uses at most" in rows[5]
    assert re.search(r"cost of vector_add +the cases of the reference take \d+ s here$", rows[6])
    assert " pass, with at most " in rows[7]
    assert "found in all 1 places that change" in rows[9]


def test_cases_that_take_long_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, now = check.Clock(), iter([100.0, 130.0, 190.0])
    monkeypatch.setattr(check, "time", SimpleNamespace(monotonic=lambda: next(now)))
    for _ in range(3):
        clock.observe(SimpleNamespace(id="scan"), *[None] * 4)  # type: ignore[arg-type]
    checked = SimpleNamespace(kernel_problems={"scan": None, "sort": None}, kept=Kept())
    long, unknown = check.costs(checked, clock)  # type: ignore[arg-type]
    assert (long.title, long.sound) == ("cost of scan", None)
    assert long.text.startswith(
        "the cases of the reference take 90 s here: let seconds, the budget or a size"
    )
    assert (unknown.sound, unknown.text) == (None, "not known: no case was run now")


UNSOUND: dict[str, tuple[tuple[tuple[str, str, str], ...], Callable[[Examination], Iterator[Row]], str]] = {
    "a bound too wide": (
        (replaced("oracle=too_wide"),),
        check.half_precision,
        "no case finds it, is a bound too wide? `a * x[i] + y[i]` of reference/vector_add.cu:9",
    ),
    "a case list too thin": (
        ((PROBLEM, "Range(1, 1 << 25)", "Range(1, 100)"),),
        check.wrong_kernels,
        "one-block passes: no case finds that only one block is launched",
    ),
    "a gap between sizes": (
        (replaced("cases=with_a_gap"),),
        check.magnitudes,
        "13 of 14 pairs of octaves have a case; none has n from 8192 to 16383",
    ),
    "a template that earns points": (
        (
            (
                TEMPLATE,
                "  // Write a kernel above, and launch it here.",
                "  ker_z<<<n, 1, 0, stream>>>(z, x, y, a);",
            ),
            (TEMPLATE, "// z[i]", f"{BLOCK_EACH}// z[i]"),
        ),
        check.template,
        "earns 12 points, of: small sizes, sizes around a border, large sizes, beyond a million, ",
    ),
    "a template that does not compile": (
        ((TEMPLATE, "  // Write a kernel above, and launch it here.", "  launch;"),),
        check.template,
        'does not compile: vector_add.cu(7): error: identifier "launch" is undefined',
    ),
    "a mutant that passes": (
        ((TABLE, 'new="x[i]"', 'new="x[i] * a"'),),
        check.wrong_kernels,
        "no-factor passes: no case finds that x is not multiplied",
    ),
    "a mutant that does not apply": (
        ((TABLE, 'old="0, stream"', 'old="1, stream"'),),
        check.wrong_kernels,
        "default-stream: '1, stream' occurs 0 times in vector_add.cu",
    ),
    "a mutant of nothing": (
        (
            (
                TABLE,
                'id="no-factor",\n        problem="vector_add"',
                'id="no-factor",\n        problem="vector_ad"',
            ),
        ),
        check.wrong_kernels,
        "of no kernel problem and no program: no-factor",
    ),
    "a wrong baseline": (
        (replaced("unfused=wrong_program"),),
        check.unfused,
        "differs from the oracle in 1, normal: ",
    ),
    "no baseline": (
        (replaced("unfused=lambda case: ()"),),
        check.unfused,
        "there is none",
    ),
    "a handout without the target": (
        ((HANDOUT, "a speedup of 1.5 over", "a speedup over"),),
        check.handout,
        "HANDOUT.md does not name vector_add's target 1.5",
    ),
    "a handout without the launcher": (
        ((HANDOUT, "`launch_vector_add`", "`vector_add`"),),
        check.handout,
        "HANDOUT.md does not name vector_add's launch_vector_add",
    ),
    "an unreachable target": (
        (("assignment.toml", "target = 1.5 ", "target = 4.0 "),),
        target,
        "target 4x is out of reach or has no room: the reference needs 1.1x of it; reference 4.00x",
    ),
    "a wrong reference": (
        ((KERNEL, "if (i < n)", "if (i < n - 1)"),),
        references,
        "loses points with seed 1: 1, normal: nothing was written",
    ),
    "a reference beyond a limit": (
        (
            (
                "assignment.toml",
                "[[problems]]",
                f"[limits]\n{FEW_INSTRUCTIONS}\n[[problems]]",
            ),
        ),
        references,
        check.LIMITED,
    ),
    "a variant that fails": (
        ((VARIANT, "i += gridDim.x * blockDim.x", "i += n"),),
        variants,
        "variants/vector_add/grid_stride.cu fails: 1025, normal: 1 of 1025 elements were never written",
    ),
    "a name that nothing has": (
        (("assignment.toml", "[[problems]]", "group_points = { 'small sices' = 1.0 }\n\n[[problems]]"),),
        lambda one: check.check(one.assignment, one.problems),
        "there is no case group 'small sices'. Did you mean 'small sizes'?",
    ),
}


@pytest.mark.parametrize("fault", UNSOUND)
def test_what_is_not_sound_is_named(fault: str, tmp_path: Path) -> None:
    changes, of, said = UNSOUND[fault]
    bad = [row for row in of(examined(example(tmp_path / "own", *changes))) if row.sound is False]
    assert [said in row.text for row in bad] == [True], bad


@pytest.mark.parametrize(
    ("folder", "told"),
    [
        ("variant/vector_add", "nothing looks at variant/: call it variants"),
        ("variants/vector_ad", "variants/vector_ad is of no problem. Did you mean 'vector_add'?"),
    ],
)
def test_a_folder_that_nothing_looks_at_is_told(folder: str, told: str, tmp_path: Path) -> None:
    one = examined(example(tmp_path / "own"))
    (one.assignment.folder / "pictures").mkdir()
    assert list(check.folders(one)) == []
    (one.assignment.folder / folder).mkdir(parents=True)
    assert [(row.sound, row.text) for row in check.folders(one)] == [(False, told)]


def test_bounds_that_are_wide_on_purpose_are_no_fault(tmp_path: Path) -> None:
    wide = replaced('oracle=too_wide, wide="z is a mean of random samples"')
    (row,) = check.half_precision(examined(example(tmp_path / "own", wide)))
    assert (row.sound, row.text) == (None, "not looked at: z is a mean of random samples")


def test_where_no_speed_is_asked_for_none_is_a_target(tmp_path: Path) -> None:
    points = ("assignment.toml", "performance = 8.0 ", "performance = 0.0 ")
    without = (HANDOUT, "a speedup of 1.5 over", "a speedup over")
    one = examined(example(tmp_path / "own", points, without))
    assert [row.sound for row in (*check.handout(one), *target(one))] == [True, True]


def test_a_template_without_its_file_is_told(tmp_path: Path) -> None:
    one = examined(example(tmp_path / "own"))
    (one.assignment.folder / TEMPLATE).unlink()
    (row,) = check.template(one)
    assert (row.title, row.sound) == ("template: vector_add", False)
    assert row.text == "student_template has no vector_add.cu: write there what students begin with"


def test_a_share_of_the_limit_needs_no_baseline(tmp_path: Path) -> None:
    share = ("assignment.toml", "[[problems]]\n", '[[problems]]\nmeasure = "share_of_limit"\n')
    none = replaced("unfused=lambda case: ()")
    (row,) = check.unfused(examined(example(tmp_path / "own", none, share)))
    assert (row.sound, row.text) == (None, "there is none")


def test_a_reference_that_is_right_and_too_slow_is_the_target_s_matter(tmp_path: Path) -> None:
    one = examined(example(tmp_path / "own"))
    record = one.graded(one.assignment.reference, 1)
    (result,) = record.problems
    slow = result.model_copy(update={"points": result.points.model_copy(update={"decided": 20.0})})
    (row,) = check.reference(one, record.model_copy(update={"problems": [slow]}))
    assert row.sound


CANCELLING = "(torch.exp(x) - torch.exp(-x)) / (torch.exp(x) + torch.exp(-x))"
ELU = "torch.where(x > 0, x, torch.exp(x) - 1)"


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize(
    ("formula", "also", "kernel"),
    [
        ("torch.nn.functional.elu(x)", ELU, "x[i] > 0 ? x[i] : expf(x[i]) - 1"),
        ("torch.tanh(x)", CANCELLING, "(expf(x[i]) - expf(-x[i])) / (expf(x[i]) + expf(-x[i]))"),
    ],
)
def test_a_variant_that_cancels_near_0_may_be_allowed(
    tmp_path: Path, formula: str, also: str, kernel: str, *, allowed: bool
) -> None:
    formulas = f"formula=lambda x: {formula},\n    also=({f'lambda x: {also},' if allowed else ''}),"
    one = examined(
        example(
            tmp_path / "own",
            (PROBLEM, "from grader.problems.contents", "import torch\nfrom grader.problems.contents"),
            (
                PROBLEM,
                "formula=add_scaled,",
                f"{formulas}\n    without=('large offset', 'one huge element'),",
            ),
            (VARIANT, "fmaf(a, x[i], y[i])", kernel),
        )
    )
    (row,) = check.variants(one, {})
    assert row.sound is allowed
    assert (check.CANCELS.cause in row.text) is not allowed
    assert row.text.endswith(check.ALLOW) is not allowed


def test_only_the_assignment_s_own_checks_are_skipped_where_the_reference_is_wrong(tmp_path: Path) -> None:
    wrong = with_another_problem(tmp_path / "own", (KERNEL, "if (i < n)", "if (i < n - 1)"))
    rows = list(check.check(wrong, [NAME], seeds=1, device="sim", sandbox="process"))
    assert [row.sound for row in rows] == [True, True, True, True, True, False, True, None]


def test_of_one_problem_nothing_of_another_one_is_needed(tmp_path: Path) -> None:
    one = examined(with_another_problem(tmp_path / "own"))
    assert [*one.kernel_problems] == [NAME]
    assert {kernel.problem.id for kernel in one.kernels} == {NAME}
    assert [row.title for row in check.unfused(one)] == [f"baseline of {NAME}"]


def test_of_one_problem_the_module_of_another_one_may_fail(tmp_path: Path) -> None:
    own = with_another_problem(tmp_path / "own").folder
    (own / "problems" / "other.py").write_text("PROBLEM = problem(")
    (own / "variants" / "other").mkdir()
    (own / VARIANT).rename(own / "variants" / "other" / "right.cu")
    table = own / TABLE
    text = table.read_text()
    table.write_text(
        text + text[text.index("MUTANTS") :].replace("MUTANTS =", "MUTANTS +=").replace(NAME, "other")
    )
    one = replace(examined(replace(read(own), only=frozenset({NAME}))), progress=lambda _: None)
    rules = next(check.check(one.assignment, one.problems))
    assert (rules.title, rules.sound) == ("rules", True)
    assert {kernel.name for kernel in one.kernels} == {"reference"}
    assert [row.title for row in check.wrong_kernels(one)] == [f"mutants of {NAME}"]
    with pytest.raises(AssignmentError, match=r"other\.py: SyntaxError"):
        assert read(own).problems


@pytest.mark.parametrize(
    ("options", "checked"),
    [((), "vector_add, other"), (("--problem", "other", "--problem", "other"), "other")],
)
def test_the_command_checks_the_problems_that_are_named(
    options: tuple[str, ...],
    checked: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = with_another_problem(tmp_path / "own").folder

    def rows(_assignment: Assignment, problems: list[str], **_options: object) -> list[Row]:
        return [check.Row("rules", True, ", ".join(problems))]

    monkeypatch.setattr(check, "check", rows)
    assert commands.main(["assignment", "check", str(folder), *options], standalone_mode=False) == 0
    assert f"  {checked}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "said"), [("vector_ad", "Did you mean 'vector_add'?"), ("gelu", "Valid: vector_add, other.")]
)
def test_a_problem_that_is_not_known_is_refused(name: str, said: str, tmp_path: Path) -> None:
    folder = with_another_problem(tmp_path / "own").folder
    command = ["assignment", "check", str(folder), "--problem", name]
    with pytest.raises(FaultError, match=re.escape(f"has no graded problem {name!r}. {said}")):
        commands.main(command, standalone_mode=False)


def test_the_command_fails_where_something_is_not_sound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = example(
        tmp_path / "own", ("assignment.toml", "[[problems]]", "group_points = { a = 1.0 }\n\n[[problems]]")
    )
    assert commands.main(["assignment", "check", str(wrong.folder)], standalone_mode=False) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "Not sound: see what is marked !!"
