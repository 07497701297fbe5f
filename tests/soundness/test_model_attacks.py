"""The attacks on models do what they say, and the row about them says which of them earns points."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from grader.languages import policy
from grader.problems.problem import ModelProblem
from grader.records.verdict import Verdict
from grader.soundness.attacks import ATTACKS, CONTROL, ModelAttack
from grader.soundness.check import attacked

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
MODELS = (
    "reference/transformer.py",
    "assignments/rmsnorm/reference/rmsnorm.py",
    "assignments/rglru/reference/rglru.py",
)
GIVEN = {"kernels": policy.public(ast.parse((ROOT / "student_template" / "kernels.py").read_text()))}


@pytest.mark.parametrize("attack", [CONTROL, *ATTACKS], ids=lambda attack: attack.id)
def test_the_policy_refuses_what_is_its_own_and_leaves_the_rest_to_the_judge(attack: ModelAttack) -> None:
    for model in MODELS:
        tree = ast.parse((ROOT / model).read_text() + attack.text)
        assert bool(policy.review(tree, model, GIVEN).reasons) == attack.refused


def test_there_are_enough_of_both_kinds() -> None:
    assert len({attack.id for attack in ATTACKS}) == len(ATTACKS)
    assert sum(attack.refused for attack in ATTACKS) >= 10
    assert sum(not attack.refused for attack in ATTACKS) >= 10


def examination(folder: Path, passes: Callable[[str], bool]) -> Any:  # noqa: ANN401 - what the row needs of one
    """One model problem; ``passes`` says which texts are right."""
    (folder / "model.py").write_text("launch = print\n")
    problem: Any = object.__new__(ModelProblem)
    object.__setattr__(problem, "file", "model.py")

    def graded(path: Path, _seed: int, _problems: object, device: str, *, fast: bool) -> Any:  # noqa: ANN401
        assert device == "sim"
        assert fast
        text = (path / "model.py").read_text()
        ast.parse(text)
        right = passes(text)
        refused = any(attack.refused and text.endswith(attack.text) for attack in ATTACKS) and not right
        result = SimpleNamespace(
            correctness=SimpleNamespace(
                verdict=Verdict.PASS if right else Verdict.FAIL, summary="", cases=[]
            ),
            trust=SimpleNamespace(verdict=Verdict.UNTRUSTED if refused else Verdict.PASS, reasons=[]),
            message="",
            build=None,
            checks=[],
        )
        return SimpleNamespace(problems=[result])

    assignment = SimpleNamespace(problems={"model": problem}, reference=folder)
    return SimpleNamespace(
        problems=["model"], assignment=assignment, progress=lambda _text: None, graded=graded
    )


def test_the_row_is_sound_where_none_passes_but_the_control(tmp_path: Path) -> None:
    (row,) = attacked(examination(tmp_path, lambda text: text.endswith(CONTROL.text)))
    assert (row.title, row.sound, row.text) == ("attacks on model", True, f"{len(ATTACKS)} earn nothing")


def test_the_row_names_the_attack_that_passes_and_a_control_that_does_not(tmp_path: Path) -> None:
    passing = ATTACKS[0]
    (row,) = attacked(examination(tmp_path, lambda text: text.endswith(passing.text)))
    assert row.sound is False
    assert f"{passing.id}: it passes" in row.text
    assert CONTROL.id in row.text
