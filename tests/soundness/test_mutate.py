"""Mutants of the grader's example: what is killed, what survives and why, and what a stopped run keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from soundness.examples import example

from grader.assignments.rules import AssignmentError
from grader.cli.main import commands
from grader.soundness import mutation_report
from grader.soundness.builds import Builder
from grader.soundness.kernels import right_kernels
from grader.soundness.killers import Status
from grader.soundness.mutants import mutants, sample
from grader.soundness.mutate import Plan, mutate
from grader.soundness.survivors import explained

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from grader.assignments.assignment import Assignment
    from grader.soundness.mutate import Judgement

SOME = (
    *("5 `128`", "9 `3.5f`", "10 `<`", "10 `n`", "10 `+`", "13 `+=`", "17 `-`", "17 `stream`"),
    *("11 `const_cast<float*>(x)", ".cu:7 `if", "20 `cudaFreeAsync"),
)


@pytest.fixture(scope="module")
def assignment(tmp_path_factory: pytest.TempPathFactory) -> Assignment:
    """The example with a number and memory that nothing needs, an idle launch, and a survivor unexplained.

    Lines have moved, and the other explanations still fit.
    """
    return example(
        tmp_path_factory.mktemp("mutate") / "own",
        (
            "reference/vector_add.cu",
            "if (i < n) z[i] = a * x[i] + y[i];",
            "float unread = a * 3.5f;\n  if (i < n) z[i] = a * x[i] + y[i];",
        ),
        (
            "reference/vector_add.cu",
            'extern "C"',
            '__global__ void ker_idle(float* z) { if (z[0] < 1) z[0] += 1; }\n\nextern "C"',
        ),
        (
            "reference/vector_add.cu",
            "cudaStream_t stream) {\n",
            "cudaStream_t stream) {\n  if (n < 0) ker_idle<<<1, 1, 0, stream>>>(z);\n",
        ),
        (
            "reference/vector_add.cu",
            "stream>>>(z, x, y, a, n);",
            "\n".join(
                (
                    "stream>>>(z, x, y, a, n);",
                    *("  void* scratch;", "  cudaMallocAsync(&scratch, 4, stream);"),
                    "  cudaFreeAsync(scratch, stream);",
                )
            ),
        ),
        ("mutants/survivors.toml", "f1279fbcf0", "0000000000"),
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mutate") / "run.json"


def by_place(judgements: Iterable[Judgement]) -> dict[str, Judgement]:
    return {one.mutant.title.partition(":")[2]: one for one in judgements}


@pytest.fixture(scope="module")
def judgements(assignment: Assignment, file: Path) -> dict[str, Judgement]:
    return by_place(mutate(assignment, Plan(only=SOME, file=file)))


def status(judgements: Mapping[str, Judgement]) -> dict[str, Status]:
    return {place: one.status for place, one in judgements.items()}


WANTED = {
    "5 `128` becomes `129`": Status.SURVIVED,
    "7 `if (threadIdx.x + 1 == blockDim.x) return;` comes in": Status.KILLED,
    "9 `3.5f` becomes `(2 * 3.5f)`": Status.EQUIVALENT,
    "10 `<` becomes `<=`": Status.KILLED,
    "10 `n` becomes `(n) - 1`": Status.KILLED,
    "10 `+` becomes `-`": Status.KILLED,
    "11 `const_cast<float*>(x)[0] = float();` comes in": Status.KILLED,
    "13 `+=` becomes `=`": Status.NOT_EXECUTED,
    "17 `-` becomes `+`": Status.SURVIVED,
    "17 `stream` becomes `0`": Status.KILLED,
    "20 `cudaFreeAsync(scratch, stream);` becomes `;`": Status.REPORTED,
}


def test_what_becomes_of_mutants(judgements: Mapping[str, Judgement]) -> None:
    assert status(judgements) == WANTED


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("10 `<` becomes `<=`", "memcheck: global_oob"),
        ("10 `n` becomes `(n) - 1`", " written"),
        ("11 `const_cast<float*>(x)[0] = float();` comes in", "x must not change"),
        ("13 `+=` becomes `=`", "kernels that no case launches"),
        ("17 `stream` becomes `0`", "race_stream"),
        ("20 `cudaFreeAsync(scratch, stream);` becomes `;`", "memcheck: leak"),
    ],
)
def test_a_finding_says_what_was_wrong(judgements: Mapping[str, Judgement], place: str, said: str) -> None:
    (finding,) = judgements[place].findings.values()
    assert said in finding.text


def test_a_leak_is_killed_where_the_assignment_allows_none(assignment: Assignment) -> None:
    limits = assignment.rules.limits.model_copy(update={"leaks_allowed": False})
    strict = replace(assignment, rules=assignment.rules.model_copy(update={"limits": limits}))
    (freed,) = mutate(strict, Plan(only=("`cudaFreeAsync(scratch, stream);` becomes",)))
    assert freed.status is Status.KILLED
    assert "memcheck: leak" in next(iter(freed.findings.values())).text


def test_a_finished_run_builds_nothing_again(
    judgements: Mapping[str, Judgement], assignment: Assignment, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Builder, "versions", None)
    assert status(by_place(mutate(assignment, Plan(only=SOME, file=file)))) == status(judgements)


def test_what_an_assignment_can_change_is_judged_again(
    judgements: Mapping[str, Judgement], assignment: Assignment, file: Path
) -> None:
    changed = replace(assignment, rules=assignment.rules.model_copy(update={"title": "Another"}))
    again = by_place(mutate(changed, Plan(only=SOME, file=file, seconds=0)))
    assert {place for place, one in again.items() if one.status is Status.NOT_JUDGED} == {
        place
        for place, one in judgements.items()
        if one.status in {Status.SURVIVED, Status.REPORTED, Status.NOT_EXECUTED}
    }


def test_the_report_counts_names_and_asks_for_a_case(
    judgements: Mapping[str, Judgement], assignment: Assignment
) -> None:
    known = explained(assignment)
    found = list(judgements.values())
    assert [one.mutant.title for one in mutation_report.unexplained(found, known)] == [
        "reference/vector_add.cu:17 `-` becomes `+`"
    ]
    assert mutation_report.scores(found, known) == pytest.approx((6 / 8, 7 / 8))
    page = mutation_report.report(found, known)
    assert "| reference/vector_add.cu | 11 | 0 | 1 | 1 | 1 | 6 | 1 | 0 | 1 | 75.0% | 87.5% |" in page
    assert "20 `cudaFreeAsync(scratch, stream);` becomes `;` (runtime call): memcheck: leak in " in page
    assert "5 `128` becomes `129` (constant): equivalent: Blocks of another size." in page
    (survivor,) = judgements["17 `-` becomes `+`"].findings.values()
    assert survivor.launched > 100
    needed = f"needed: a case of vector_add ({survivor.launched} of its cases run what changes) unlike those"
    assert needed in page
    assert "13 `+=` becomes `=`: kernels that no case launches" in page


@pytest.mark.parametrize(("words", "code"), [(("17 `-`",), 1), (("5 `128`", "10 `<`"), 0)])
@pytest.mark.usefixtures("judgements")
def test_the_command_fails_where_a_survivor_has_no_reason(
    assignment: Assignment,
    file: Path,
    words: tuple[str, ...],
    code: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    only = [part for word in words for part in ("--only", word)]
    command = ["assignment", "mutate", str(assignment.folder), "--json", str(file), *only]
    assert commands.main(command, standalone_mode=False) == code
    assert "explained, but no mutant any more: 0000000000, reference/vector" in capsys.readouterr().err


@pytest.mark.usefixtures("judgements")
def test_the_command_fails_where_mutants_are_left(
    assignment: Assignment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["assignment", "mutate", str(assignment.folder), "--seconds", "0", "--sample", "3"]
    assert commands.main([*command, "--json", str(tmp_path / "none.json")], standalone_mode=False) == 1
    assert "6 mutants are left: run again with the same --json" in capsys.readouterr().out


def test_a_sample_takes_of_many_operators_and_is_the_same_again(assignment: Assignment) -> None:
    found = mutants(right_kernels(assignment))
    chosen = sample(found, 5, seed=3)
    assert chosen == sample(found, 5, seed=3) != sample(found, 5, seed=4)
    for label in {one.label for one in found}:
        mine = [one.edit.operator for one in chosen if one.label == label]
        assert len(mine) == len(set(mine)) == 5


def test_a_wrong_reference_is_no_place_to_begin(tmp_path: Path) -> None:
    wrong = example(tmp_path / "own", ("reference/vector_add.cu", "a * x[i]", "x[i]"))
    with pytest.raises(AssignmentError, match="reference as vector_add is not right: with device pointers"):
        mutate(wrong, Plan(only=("reference",), per_file=1))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[survivor]]\nkey = "a"\nedit = "b"\nequivalent = true\n', "survivor.0.reason: Field required"),
        ("[[survivors]]\n", "survivors: Extra inputs are not permitted"),
    ],
)
def test_a_wrong_list_of_survivors_is_refused(tmp_path: Path, text: str, said: str) -> None:
    own = example(tmp_path / "own")
    (own.folder / "mutants" / "survivors.toml").write_text(text)
    with pytest.raises(AssignmentError, match=said):
        explained(own)
