"""The identity of this grader by its content: records of different graders cannot be compared."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_SOURCES = {".py", ".toml", ".cu"}
_HEADERS = {"problems/wb.h"}  # those of the simulator are not installed: its libraries stand for them
_LIBRARIES = _ROOT / "simulator" / "lib"
_JUDGE_NOTHING = ("batch/", "reports/", "cli/", "processes/", "run/doctor.py", "installed/")


@cache
def judging_sha256() -> str:
    """The hash of all files that a verdict can depend on; reports and batch are left out."""
    digest = hashlib.sha256()
    for path in sorted(_ROOT.rglob("*")):
        name = path.relative_to(_ROOT).as_posix()
        judges = path.suffix in _SOURCES or name in _HEADERS or path.parent == _LIBRARIES
        if judges and not name.startswith(_JUDGE_NOTHING) and path.is_file():
            content = path.read_bytes()
            digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()
