"""Which assignments the nox session ``assignments -- --changed`` looks at; nothing is checked."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

FILES = {
    "assignments/base/assignment.toml": 'reference = "../../kernels"\n',
    "assignments/more/assignment.toml": 'extends = "base"\n',
    "assignments/beside/assignment.toml": 'extends = "../base"\n',
    "assignments/other/assignment.toml": "",
    "kernels/k.cu": "",
}


@pytest.fixture
def changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """The noxfile's function in a folder of three assignments; nox itself is not needed for it."""
    nox = ModuleType("nox")
    nox.session = lambda function: function  # type: ignore[attr-defined]
    nox.options = SimpleNamespace()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nox", nox)
    shutil.copy(Path(__file__).parents[2] / "noxfile.py", tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found: Callable[..., list[str]] = runpy.run_path(str(tmp_path / "noxfile.py"))["changed_assignments"]
    return found


@pytest.mark.skipif(shutil.which("git") is None, reason="no git on PATH")
def test_an_assignment_changes_with_its_files_and_those_of_the_one_that_it_extends(
    changed: Callable[..., list[str]], tmp_path: Path
) -> None:
    assert changed("HEAD") == ["base", "beside", "more", "other"], "there is no repository"
    me = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], [*me, "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    assert changed("HEAD") == []
    (tmp_path / "kernels" / "k.cu").write_text("// another")
    assert changed("HEAD") == ["base", "beside", "more"]
    assert changed("nowhere") == ["base", "beside", "more", "other"]
