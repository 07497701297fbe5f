"""The table of what right kernels use of their bounds, for the grader's example of an assignment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from soundness.bounds_in_use import HEAD, table
from soundness.examples import example

if TYPE_CHECKING:
    from pathlib import Path


def test_right_kernels_use_less_than_half_of_a_bound_and_half_precision_more_than_all(tmp_path: Path) -> None:
    *head, line = table(example(tmp_path / "mine"), ())
    assert tuple(head) == HEAD
    _, name, output, right, where, half, _ = (cell.strip() for cell in line.split("|"))
    assert (name, output) == ("`vector_add`", "`z`")
    assert 0 < float(right) < 0.5
    assert where.startswith(("reference, ", "grid_stride.cu, "))
    assert float(half.removesuffix("x")) > 1
