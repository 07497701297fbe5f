"""Finds libraries with the system's dynamic loader."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path


def loader_path(library: str) -> Path | None:
    """The path of ``library`` in the loader's cache; None if it is not there."""
    ldconfig = shutil.which("ldconfig", path="/sbin:/usr/sbin:/bin:/usr/bin")
    if ldconfig is None:
        return None
    cache = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, timeout=60, check=False).stdout
    match = re.search(rf"^\s*{re.escape(library)} .*=> (.+)$", cache, re.MULTILINE)
    return Path(match[1]) if match else None
