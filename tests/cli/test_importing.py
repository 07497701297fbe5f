"""What importing the modules of a command leaves behind until the process ends."""

import subprocess
import sys

import pytest

PROGRAM = """
import atexit, gc, sys, types
atexit.register(lambda: print(gc.get_freeze_count() > 0))
from grader.processes.imports import importing
with importing():
    sys.modules["{module}"] = types.ModuleType("{module}")
"""


@pytest.mark.parametrize(("module", "frozen"), [("other", "True"), ("triton", "False")])
def test_modules_are_garbage_at_the_end_only_where_triton_would_complain(module: str, frozen: str) -> None:
    argv = [sys.executable, "-c", PROGRAM.format(module=module)]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == f"{frozen}\n"
