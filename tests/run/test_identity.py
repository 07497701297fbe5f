"""What makes a grader another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from grader.run import identity

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("file", "another"),
    [
        ("judge/timing.py", True),
        ("assignments/a.toml", True),
        ("baseline/b.cu", True),
        ("problems/wb.h", True),
        ("simulator/lib/grader-sim", True),
        ("reports/console.py", False),
        ("cli/grade.py", False),
        ("judge/__pycache__/timing.pyc", False),
    ],
)
def test_a_change_of_what_judges_makes_another_grader(
    file: str, another: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "_ROOT", tmp_path)
    monkeypatch.setattr(identity, "_LIBRARIES", tmp_path / "simulator" / "lib")
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("before")
    before = identity.judging_sha256.__wrapped__()
    path.write_text("after")
    assert (identity.judging_sha256.__wrapped__() != before) == another
