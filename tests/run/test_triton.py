"""Submissions in Triton, graded on the simulator like those in CUDA."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from grader.assignments.assignment import Assignment, load
from grader.assignments.mutants import table
from grader.cli.main import commands
from grader.problems.problem import MEMORY_GROUP, KernelProblem
from grader.records.verdict import Ending, Verdict
from grader.reports.fix_first import fix_first
from grader.run import grading
from grader.run.bench import Bench
from grader.run.options import GradingOptions
from grader.soundness import check
from grader.soundness.check import Examination

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grader.assignments.mutants import Mutant
    from grader.problems.problem import Case, Problem
    from grader.records.record import ProblemResult, Record

pytest.importorskip("triton", reason="needs Triton: pip install 'kernel-grader[triton]'")

ASSIGNMENTS = Path(__file__).parents[2] / "assignments"
REFERENCES = {
    "rmsnorm": ("rmsnorm_forward", "rmsnorm_backward"),
    "llm_systems_3": (
        "softmax_forward",
        "softmax_backward",
        "layernorm_forward",
        "layernorm_backward",
    ),
    "rglru": ("linear_scan", "rglru_forward", "rglru_backward"),
    "first_kernels": ("scan", "histogram", "matmul_half"),
}
LLM, RMSNORM, RGLRU, FIRST = ALL = tuple(
    load(str(ASSIGNMENTS / name)) for name in ("llm_systems_3", "rmsnorm", "rglru", "first_kernels")
)
FILE = "rmsnorm_kernel.py"
FORWARD = "rmsnorm_forward"
MUTANTS = [(one, mutant) for one in ALL for mutant in table(one, "triton")]
CONFIGS = '[triton.Config({"over": over}) for over in (0, 8)]'
TUNED = f'@triton.autotune({CONFIGS}, key=[], restore_value=["rstd"])\n'
VARIANTS = [(one, path) for one in ALL for path in sorted((one.folder / "variants").glob("*/*.py"))]
FIRST_MUTANTS = list({mutant.problem: (one, mutant) for one, mutant in reversed(MUTANTS)}.values())
FIRST_VARIANTS = list({path.parent: (one, path) for one, path in reversed(VARIANTS)}.values())
"""One of each problem: ``nox -s assignments`` runs all of them, as compiling takes its time."""


def firsts(problem: Problem, most: int | None = None) -> tuple[Case, ...]:
    """The first case of each group, as compiling takes its time."""
    return tuple({case.group: case for case in reversed(problem.cases(1))}.values())[:most]


ONE, SOME = (partial(firsts, most=most) for most in (1, 4))


def of_group(problem: Problem, group: str) -> tuple[Case, ...]:
    return tuple(case for case in problem.cases(1) if case.group == group) or firsts(problem, 3)


def grade(
    path: Path,
    assignment: Assignment,
    problems: Sequence[str],
    monkeypatch: pytest.MonkeyPatch,
    cases: Callable[[Problem], tuple[Case, ...]] = ONE,
    *,
    all_configs: bool = False,
) -> Record:
    some = {
        name: replace(problem, cases=lambda _, problem=problem: cases(problem))
        for name, problem in assignment.problems.items()
    }
    assignment = replace(assignment)  # one that has not loaded all cases yet
    monkeypatch.setattr(Assignment, "problems", property(lambda _: some))
    request = grading.GradingRequest(
        path, assignment, tuple(problems), GradingOptions("sim", "process", all_configs=all_configs), seed=1
    )
    return grading.grade(request, bench=Bench())


def graded_forward(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> ProblemResult:
    (folder / FILE).write_text(text)
    (result,) = grade(folder, RMSNORM, (FORWARD,), monkeypatch).problems
    return result


def honest() -> str:
    return (RMSNORM.folder / "reference_triton" / FILE).read_text()


@pytest.mark.parametrize("name", REFERENCES)
def test_the_references_in_triton_are_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assignment = load(name)
    record = grade(assignment.folder / "reference_triton", assignment, REFERENCES[name], monkeypatch, firsts)
    assert record.error is None
    for problem in record.problems:
        failed = [case for case in problem.correctness.cases if case.verdict is not Verdict.PASS]
        assert not failed, (problem.message, failed)
        assert [one for one in problem.checks if one.findings] == []
        assert (problem.verdict, problem.language) == (Verdict.PASS, "triton")


@pytest.mark.parametrize(("assignment", "mutant"), FIRST_MUTANTS, ids=lambda one: one.id)
def test_a_mutant_fails(
    assignment: Assignment, mutant: Mutant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / mutant.file).write_text(mutant.text(assignment))
    cases = partial(of_group, group=mutant.group)
    (problem,) = grade(tmp_path, assignment, (mutant.problem,), monkeypatch, cases).problems
    assert problem.verdict is Verdict.FAIL
    groups = {group.name for group in problem.correctness.groups if group.verdict is Verdict.FAIL}
    assert mutant.group in groups


@pytest.mark.parametrize(
    ("assignment", "path"), FIRST_VARIANTS, ids=lambda one: one.stem if isinstance(one, Path) else one.id
)
def test_a_variant_passes(
    assignment: Assignment, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = assignment.problems[path.parent.name]
    assert isinstance(asked, KernelProblem)
    shutil.copy(path, tmp_path / Path(asked.file).with_suffix(".py").name)
    (problem,) = grade(tmp_path, assignment, (asked.id,), monkeypatch, SOME).problems
    failed = [case for case in problem.correctness.cases if case.verdict is not Verdict.PASS]
    assert not failed, (problem.message, failed)
    assert [one for one in problem.checks if one.findings] == []
    assert (problem.verdict, problem.language) == (Verdict.PASS, "triton")


def test_every_problem_has_enough_mutants_and_variants() -> None:
    for assignment in (LLM, RMSNORM, RGLRU):  # of the last: tests/assignments/test_first_kernels.py
        for name in REFERENCES[assignment.id]:
            problem = assignment.problems[name]
            mine = [mutant for one, mutant in MUTANTS if one is assignment and mutant.problem == name]
            assert len(mine) >= 6, name
            assert {mutant.group for mutant in mine} <= {*problem.groups, MEMORY_GROUP}
            assert len([path for _, path in VARIANTS if path.parent.name == name]) >= 3, name


@pytest.mark.parametrize("name", ["llm_systems_3", "rmsnorm", "rglru"])
def test_a_template_in_triton_is_whole_and_earns_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    options = ["new", str(folder), "--assignment", name, "--language", "triton"]
    assert commands.main(options, standalone_mode=False) == 0
    for problem in grade(folder, load(name), REFERENCES[name], monkeypatch).problems:
        assert (problem.language, problem.points.earned) == ("triton", 0)
        assert any("is still to be written" in case.message for case in problem.correctness.cases)
        assert Ending.UNBEGUN in {case.ending for case in problem.correctness.cases}


def test_a_template_that_there_is_not_is_a_fault_of_the_command(tmp_path: Path) -> None:
    options = ["new", str(tmp_path / "mine"), "--assignment", "pointwise", "--language", "triton"]
    with pytest.raises(click.ClickException, match="has no template in triton"):
        commands.main(options, standalone_mode=False)


def test_a_check_looks_at_every_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shutil.copytree(RMSNORM.folder, tmp_path / "rmsnorm")
    for path in (folder / "variants" / FORWARD).glob("*.py"):
        if path.stem != "two_kernels":
            path.unlink()
    warps = "4 if wide <= 4096 else 8"
    edits = [
        {"id": "kept", "old": "normal * scale[None, :]", "new": "normal", "why": "no weight is applied"},
        {"id": "lost", "old": warps, "new": "4", "why": "it is slow"},
    ]
    (folder / "mutants" / "triton.py").write_text(
        "from grader.assignments.mutants import Mutant\n"
        f"both = dict(problem={FORWARD!r}, file={FILE!r}, language='triton', group='streams')\n"
        f"MUTANTS = tuple(Mutant(**both, **one) for one in {edits!r})\n"
    )
    assignment = load(str(folder))
    one = {FORWARD: replace(problem := assignment.problems[FORWARD], cases=lambda _: ONE(problem))}
    monkeypatch.setattr(Assignment, "problems", property(lambda _: one))
    examination = Examination(load(str(folder)), [FORWARD], 1, "sim", "process", lambda _text: None, Bench())
    rows = {row.title: row for row in check.further_languages(examination)}
    assert [row.sound for row in rows.values()] == [True, True, True, False]
    assert "still to be written" in rows[f"triton template: {FORWARD}"].text
    assert rows[f"triton reference: {FORWARD}"].text.startswith("full marks, seeds: 1; uses at most ")
    assert rows[f"triton variants of {FORWARD}"].text == "1 pass"
    assert rows[f"triton mutants of {FORWARD}"].text == "lost passes: no case finds that it is slow"


@pytest.mark.parametrize("all_configs", [False, True])
def test_the_first_configuration_counts_and_all_are_checked_if_so_asked(
    all_configs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = honest()
    for old, new in (
        ("@triton.jit\ndef forward(", f"{TUNED}@triton.jit\ndef forward("),
        ("epsilon, tall: tl.constexpr,", "epsilon, over: tl.constexpr, tall: tl.constexpr,"),
        ("root, mask=row < rows)", "root, mask=row < rows + over)"),
        ("hidden, epsilon, tall, wide, num_warps=warps)", "hidden, epsilon, tall=tall, wide=wide)"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (tmp_path / FILE).write_text(text)
    (problem,) = grade(tmp_path, RMSNORM, (FORWARD,), monkeypatch, all_configs=all_configs).problems
    assert {case.verdict for case in problem.correctness.cases} == {Verdict.PASS}, problem.message
    kinds = {finding.kind for one in problem.checks for finding in one.findings}
    assert kinds == ({"global_oob"} if all_configs else set())


def test_a_finding_names_the_line_in_words_of_triton(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = "tl.store(y + at, normal * scale[None, :], mask=inside)"
    problem = graded_forward(
        tmp_path, honest().replace(store, store.replace(", mask=inside", "")), monkeypatch
    )
    line = next(n for n, text in enumerate(honest().splitlines(), 1) if store in text)
    findings = [finding for one in problem.checks for finding in one.findings]
    assert ("global_oob", FILE, line) in {(one.kind, one.file, one.line) for one in findings}
    assert any("program (" in one.message and "mask of this access" in one.message for one in findings)
    assert not any("descriptor" in one.message for one in findings)
    assert any(one.source is not None for one in findings)


def test_a_kernel_that_does_not_compile_is_told_with_its_own_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = graded_forward(
        tmp_path, honest().replace("value = tl.load(x", "value = tl.load(1.5 * x"), monkeypatch
    )
    first = fix_first(problem)
    assert first is not None
    assert first.fault.startswith("The kernel forward does not compile: ")
    assert first.text.strip().startswith("value = tl.load(1.5 * x")


def test_a_misspelt_name_is_a_mistake_and_no_reason_for_distrust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = graded_forward(tmp_path, honest().replace("value = tl.load(x", "value = tl.lod(x"), monkeypatch)
    assert (problem.verdict, problem.points.earned) == (Verdict.FAIL, 0)
    assert problem.message.endswith("(did you mean load?)")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "    forward[grid](",
            "    x.sum()\n    forward[grid](",
            "launch a kernel",
        ),
        ("    forward[grid](", "    y.add_(x)\n    forward[grid](", "add_ is PyTorch's"),
        ("    forward[grid](y,", "    forward[grid](torch.empty(5),", "a tensor of the host"),
        ("    forward[grid](", "    raise ValueError('no')\n    forward[grid](", f"{FILE}:"),
        ("    value = tl.load(x", "    value = tl.load(1.5 * x", "does not compile"),
        ("    value = tl.load(x", "    value = tl.lod(x", "did you mean load?"),
        ("def rmsnorm_forward(y", "def rmsnorm_foward(y", "Found rmsnorm_foward: rename it"),
        ("weight, epsilon):", "weight):", "Give it y, rstd, x, weight, epsilon"),
        ("import torch\n", "import torch\nimport nothing_of_this_name\n", "imports nothing_of_this_name"),
    ],
)
def test_what_cannot_run_is_told_to_its_author(
    old: str, new: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert honest().count(old) == 1
    problem = graded_forward(tmp_path, honest().replace(old, new), monkeypatch)
    assert problem.points.earned == 0
    told = [problem.message, *problem.trust.reasons, *(case.message for case in problem.correctness.cases)]
    assert any(said in text for text in told), told
    assert problem.language == "triton"


def test_the_file_decides_the_language_of_each_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in RMSNORM.reference.glob("*.*"):
        shutil.copy(path, tmp_path)
    forward_only = honest().replace("def rmsnorm_backward(", "def not_asked_for(")
    (tmp_path / FILE).write_text(forward_only)
    record = grade(tmp_path, RMSNORM, REFERENCES["rmsnorm"], monkeypatch)
    forward, backward = record.problems
    assert (forward.language, backward.language) == ("triton", "cuda")
    assert [problem.verdict for problem in record.problems] == [Verdict.PASS] * 2
    assert forward.notes == [
        f"{FILE} was graded, not rmsnorm_kernel.cu: remove {FILE} if rmsnorm_kernel.cu is to count"
    ]


def test_a_problem_may_be_for_one_language_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(RMSNORM.template_in("triton") / FILE, tmp_path)
    entries = [
        entry.model_copy(update={"languages": ("cuda",)}) if entry.id == FORWARD else entry
        for entry in RMSNORM.rules.problems
    ]
    own = replace(RMSNORM, rules=RMSNORM.rules.model_copy(update={"problems": tuple(entries)}))
    forward, backward = grade(tmp_path, own, REFERENCES["rmsnorm"], monkeypatch).problems
    assert (forward.verdict, forward.language) == (Verdict.FAIL, "cuda")
    assert "rmsnorm_kernel.cu is missing" in forward.message
    assert backward.language == "triton"


def test_the_target_is_that_of_the_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in RMSNORM.reference.glob("*.*"):
        shutil.copy(path, tmp_path)
    (tmp_path / FILE).write_text(honest().replace("def rmsnorm_backward(", "def not_asked_for("))
    entries = [
        entry.model_copy(update={"target": 0.5, "language_targets": {"triton": 0.25}})
        for entry in RMSNORM.rules.problems
    ]
    own = replace(RMSNORM, rules=RMSNORM.rules.model_copy(update={"problems": tuple(entries)}))
    forward, backward = grade(tmp_path, own, REFERENCES["rmsnorm"], monkeypatch).problems
    assert (forward.performance.target, backward.performance.target) == (0.25, 0.5)


def test_a_check_tells_which_file_a_language_lacks(tmp_path: Path) -> None:
    folder = shutil.copytree(RMSNORM.folder, tmp_path / "rmsnorm")
    (folder / "reference_triton" / FILE).unlink()
    examination = Examination(load(str(folder)), [FORWARD], 1, "sim", "process", lambda _text: None, Bench())
    (row,) = check.further_languages(examination)
    remedy = "write it, or leave triton out of the problem's languages"
    assert (row.sound, row.text) == (False, f"there is no reference_triton/{FILE}: {remedy}")


def test_an_assignment_that_does_not_allow_triton_does_not_look_at_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / FILE).write_text(honest())
    only = replace(RMSNORM, rules=RMSNORM.rules.model_copy(update={"languages": ("cuda",)}))
    (problem,) = grade(tmp_path, only, (FORWARD,), monkeypatch).problems
    assert (problem.verdict, problem.language) == (Verdict.FAIL, "cuda")
    assert "rmsnorm_kernel.cu is missing" in problem.message
