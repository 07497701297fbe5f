"""Functions on tensors, graded on the simulator: what they return, fill and may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from graded_module import ASSIGNMENT, FILLS, RETURNS, edited, graded

from grader.records.verdict import Verdict
from grader.run.kinds import kind_of

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("triton", reason="needs Triton: pip install 'kernel-grader[triton]'")


def test_its_kind_is_its_own() -> None:
    assert [kind_of(problem).name for problem in ASSIGNMENT.problems.values()] == ["module problem"] * 2


@pytest.mark.parametrize(
    ("name", "edits"),
    [
        (RETURNS, ()),
        (FILLS, (("    return out", "    return None"),)),
        (
            FILLS,
            (
                ("shift, out = data", "shift, given = data\n    out = torch.empty_like(given)"),
                ("import triton\n", "import torch\nimport triton\n"),
            ),
        ),
    ],
    ids=["returns", "fills", "returns another than is given"],
)
def test_outputs_are_those_returned_or_filled(
    name: str, edits: tuple[tuple[str, str], ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = graded(tmp_path, name, edited(name, *edits), monkeypatch)
    assert result.verdict is Verdict.PASS, [case.message for case in result.correctness.cases]
    assert [check for check in result.checks if check.findings] == []


def test_what_it_returns_instead_is_said_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = edited(RETURNS, ("    return y", "    return y[:, 0]"))
    result = graded(tmp_path, RETURNS, text, monkeypatch)
    case = result.correctness.cases[0]
    assert (result.verdict, case.file) == (Verdict.FAIL, f"{RETURNS}.py")
    assert "def row_softmax" in text.splitlines()[case.line - 1]
    assert "row_softmax returns a tensor (1,) of float32 on the device for y" in case.message


def test_a_kernel_that_writes_behind_the_end_has_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = edited(RETURNS, ("powers / tl.sum(powers, 0), mask=inside", "powers / tl.sum(powers, 0)"))
    result = graded(tmp_path, RETURNS, text, monkeypatch)
    (finding,) = [finding for check in result.checks for finding in check.findings][:1]
    assert (finding.kind, finding.file) == ("global_oob", f"{RETURNS}.py")
    assert "tl.store(y" in text.splitlines()[finding.line - 1]


def test_another_number_of_parameters_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = edited(FILLS, ("(data):", "(x, y, shift, out):"), ("    x, y, shift, out = data\n", ""))
    result = graded(tmp_path, FILLS, text, monkeypatch)
    assert "Give it one parameter, the tuple (x, y, shift, out)." in result.message


BESIDE = """
    largest = x.max(-1, keepdim=True).values
    x = x - largest.expand(rows, columns)
    x[:, 0] += 0.0
"""


def test_with_all_operators_pytorch_computes_beside_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = edited(RETURNS, ("rows, columns = x.shape\n", f"rows, columns = x.shape{BESIDE}"))
    result = graded(tmp_path, RETURNS, text, monkeypatch, "all")
    assert result.verdict is Verdict.PASS, [case.message for case in result.correctness.cases]


def test_with_all_operators_a_kernel_still_has_to_be_launched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import torch\n\n\ndef row_softmax(x):\n    return torch.softmax(x, -1)\n"
    result = graded(tmp_path, RETURNS, text, monkeypatch, "all")
    assert result.verdict is Verdict.FAIL
    assert result.correctness.cases[0].message == "no kernel was launched: PyTorch computed the result"
