"""What ``busy.py`` sees of a machine."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from busy import look, looking

from grader.devices.sharing import Sharing

if TYPE_CHECKING:
    import pytest


def test_a_gpu_is_used_as_long_as_somebody_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Sharing("GPU-1").shared(), looking() as looks:
        assert look().held
        while not looks:
            pass
    assert looks[0].held
    assert not look().held


def test_a_compiler_that_runs_is_seen(tmp_path: Path) -> None:
    sleep = shutil.which("sleep")
    assert sleep is not None
    shutil.copy(sleep, tmp_path / "ptxas")
    with subprocess.Popen([tmp_path / "ptxas", "60"]) as process:
        name = Path(f"/proc/{process.pid}/comm")  # a process is told of before it gets its program's name
        while name.read_text() != "ptxas\n":
            pass
        assert look().building
        process.kill()
