"""Packages can be imported where the folder that they lie in is closed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from grader.devices.runner import packed, python
from grader.sandbox.keeper import landlock_version
from grader.sandbox.process import ProcessSandbox
from grader.sandbox.sandbox import Job, Limits

_IMPORT = """
import os, sys
sys.path.insert(0, "runner.zip")
from grader.runner.packages import Packages
sys.meta_path.append(Packages(sys.argv[1:]))
try: os.listdir(os.path.dirname(sys.argv[1]))
except PermissionError: print("closed")
import numpy, space.inner
print(numpy.arange(4).sum(), space.inner.ANSWER)
"""


@pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
def test_a_package_is_imported_from_its_own_folder_alone(tmp_path: Path) -> None:
    space = tmp_path / "space"
    space.mkdir()
    (space / "inner.py").write_text("ANSWER = 42\n")
    own = Path(np.__file__).parent
    folders = [path for path in (own, own.with_name("numpy.libs"), space) if path.exists()]
    interpreter, needed = python()
    job = Job(
        (str(interpreter), "-I", "-S", "-B", "-c", _IMPORT, *map(str, folders)),
        Limits(wall_seconds=60),
        inputs=(*needed, *folders),
        files={"runner.zip": packed()},
    )
    outcome = ProcessSandbox().run(job)
    closed = ["closed"] if not own.is_relative_to(sys.base_prefix) else []
    assert outcome.stdout.decode().split() == [*closed, "6", "42"], outcome.stderr.decode()
