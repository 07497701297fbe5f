"""Which grader this is, by its content: only records of the same one compare with each other."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parent
_SOURCES = {".py", ".toml", ".cu"}
_LIBRARIES = _ROOT / "simulator" / "lib"
_JUDGE_NOTHING = ("batch", "reports", "cli", "doctor.py", "interrupts.py")


@cache
def judging_sha256() -> str:
    """The hash of all files that a verdict can depend on; not of those that show it or hand out the work."""
    digest = hashlib.sha256()
    for path in sorted(_ROOT.rglob("*")):
        place = path.relative_to(_ROOT)
        judges = path.suffix in _SOURCES or path.parent == _LIBRARIES
        if judges and place.parts[0] not in _JUDGE_NOTHING and path.is_file():
            content = path.read_bytes()
            digest.update(f"{place.as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()
