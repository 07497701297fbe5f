"""What is said of an exception in a student's Python code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from grader.runner.raised import RaisedError, RefusedError, raised

if TYPE_CHECKING:
    from pathlib import Path


def told(tmp_path: Path, error: str) -> RaisedError:
    path = tmp_path / "kernel.py"
    path.write_text(f"def launch(RefusedError):\n    raise {error}\n")
    names: dict[str, object] = {}
    exec(compile(path.read_text(), path, "exec"), names)
    with pytest.raises((ValueError, KeyError, RuntimeError)) as caught:
        names["launch"](RefusedError)  # type: ignore[operator]
    return raised(caught.value, str(path))


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("ValueError('no')", "kernel.py:2: ValueError: no"),
        ("KeyError('no such option')", "kernel.py:2: KeyError: no such option"),
        ("NotImplementedError", "kernel.py:2: launch is still to be written"),
        ("RefusedError('add is not for launchers')", "kernel.py:2: add is not for launchers"),
        ("RefusedError('kernel.py:7: it does not compile')", "kernel.py:7: it does not compile"),
    ],
)
def test_it_is_told_with_its_line_and_without_what_is_no_use(tmp_path: Path, error: str, text: str) -> None:
    account = told(tmp_path, error)
    assert str(account) == text
    assert account.status == ("unbegun" if error == "NotImplementedError" else "raised")
