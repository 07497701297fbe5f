"""Where the system's loader finds a library."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path


def loader_path(library: str) -> Path | None:
    """Where the loader's cache says that ``library`` is, None if it does not know it."""
    ldconfig = shutil.which("ldconfig", path="/sbin:/usr/sbin:/bin:/usr/bin")
    if ldconfig is None:
        return None
    told = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, timeout=60, check=False).stdout
    match = re.search(rf"^\s*{re.escape(library)} .*=> (.+)$", told, re.MULTILINE)
    return Path(match[1]) if match else None
