"""Why the compiler did not find a header, for the author of the file that includes it.

Layer: standard library only.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_NOT_FOUND = re.compile(
    r"(?:^(?P<includer>[^\s:]+):\d+:\d+: )?fatal error: (?P<name>.+?): No such file.*"
    r"(?:\n.*(?P<angle><)(?P=name)>)?",
    re.MULTILINE,
)
_DRIVE = re.compile(r"[A-Za-z]:")


def missing(log: str, file: str, there: Iterable[str]) -> str:
    """A remedy for the header that the compiler of ``file`` did not find; "" if it found all.

    Args:
        log: what the compiler said.
        file: the name of the source.
        there: the files that it was compiled with, by path from its folder.
    """
    match = _NOT_FOUND.search(log)
    if match is None:
        return ""
    name, folder = match["name"], posixpath.dirname(match["includer"] or "")
    path = name.replace("\\", "/")
    for other in sorted(there):
        if posixpath.basename(other) == posixpath.basename(path):
            if folder.startswith(".."):  # from there, the folder of the source has a name that is not known
                return f"{name} is not where the compiler looks for it. Put it beside {match['includer']}."
            right = posixpath.relpath(other, folder or ".")
            return f'{name} is not where the compiler looks for it. Write #include "{right}".'
    if match["angle"]:
        return (
            f"the header <{name}> is not available here. Do without it; if it is your own, hand it in, too."
        )
    if _leads_out(posixpath.normpath(posixpath.join(folder, path))):
        return (
            f"{name} was not found near {file} in what was handed in. Put the header beside {file} and write "
            f'#include "{posixpath.basename(path)}".'
        )
    return f"{name} was not found beside {file} or near it. Hand in the folder that holds it, too."


def _leads_out(path: str) -> bool:
    return path.startswith(("/", "../")) or _DRIVE.match(path) is not None
