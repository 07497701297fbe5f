"""Builds several versions of one kernel with one call of nvcc, which saves most of the time of each.

Each version stands in a namespace of its own, and so does a version that is built alone: its names in the PTX
are the same but for the number.

Layer: imports languages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.languages.cuda.compile import build, compile_limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from grader.languages.cuda.cache import Cache
    from grader.languages.language import Build
    from grader.run.bench import Machine

TOGETHER = 8  # one digit, so that all names have the same length
PTX_ONLY = (
    "compute_80"  # as architecture: the simulator needs no machine code, and ptxas takes half of a build
)
_MAIN = "versions.cu"
_SYSTEM_HEADER = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<.*>", re.MULTILINE)
_GUARD = re.compile(r"#ifndef\s+(?P<name>\w+)\s*\n\s*#define\s+(?P=name)\s*\n")
_FIRST_HEADERS = ("#include <cuda_runtime.h>", "#include <cuda_fp16.h>")  # an edit may need the second one


@dataclass(frozen=True)
class Version:
    """One version of a kernel, built: the library that it is in and its entry point there.

    ``library`` is None where it does not compile; ``log`` says why.
    """

    library: Path | None
    entry_point: str
    number: int
    log: str = ""


@dataclass(frozen=True)
class Builder:
    """What builds versions, and where builds are kept."""

    machine: Machine
    cache: Cache

    def versions(self, file: str, entry_point: str, texts: Sequence[Mapping[str, str]]) -> list[Version]:
        """Build up to ``TOGETHER`` versions, each its files by name, of the launcher in ``file``.

        Where one does not compile, the others are built without it.

        Raises:
            BuildError: the machine failed.
        """
        versions: dict[int, Version] = {}
        left = list(range(len(texts)))
        while left:
            built = self._build({number: texts[number] for number in left}, file, entry_point)
            if built.library is not None:
                good = {one: Version(built.library, f"{entry_point}_{one}", one) for one in left}
                return list(dict(sorted({**versions, **good}.items())).values())
            blamed = _blamed(built.log) & {*left}
            if len(left) == 1 or not blamed:
                break
            versions |= {one: Version(None, "", one, built.log) for one in blamed}
            left = [one for one in left if one not in blamed]
        if len(left) > 1:  # nobody is named, so each is tried alone
            for one in left:
                alone = self._build({one: texts[one]}, file, entry_point)
                versions[one] = Version(alone.library, f"{entry_point}_{one}", one, alone.log)
        elif left:
            versions[left[0]] = Version(None, "", left[0], built.log)
        return [versions[number] for number in range(len(texts))]

    def _build(self, texts: Mapping[int, Mapping[str, str]], file: str, entry_point: str) -> Build:
        return build(
            _MAIN,
            {name: text.encode() for name, text in together(texts, file, entry_point)},
            self.machine.toolchain,
            self.machine.sandbox,
            compile_limits(180.0 * len(texts)),
            self.cache,
            PTX_ONLY,
        )


def together(
    texts: Mapping[int, Mapping[str, str]], file: str, entry_point: str
) -> Iterator[tuple[str, str]]:
    """The files of a build of several versions, by their numbers: each in a folder and a namespace.

    Lines stay what they are; a header that all have is a different one to each.
    """
    lines = dict.fromkeys(_FIRST_HEADERS)  # no header of the system inside of a namespace
    for number, version in texts.items():
        for name, text in version.items():
            lines |= dict.fromkeys(line.strip() for line in _SYSTEM_HEADER.findall(text))
            yield f"version_{number}/{name}", _included_again(text, number)
    main = list(lines)
    for number in texts:
        main += [
            f"#define {entry_point} {entry_point}_{number}",
            f"namespace version_{number} {{",
            f'#include "version_{number}/{file}"',
            "}",
            f"#undef {entry_point}",
        ]
    yield _MAIN, "\n".join([*main, ""])


def _included_again(text: str, number: int) -> str:
    """A file that does not keep other versions of itself from being included."""
    guard = _GUARD.search(text)
    text = text.replace("#pragma once", "")
    return text if guard is None else re.sub(rf"\b{guard['name']}\b", f"{guard['name']}_{number}", text)


def _blamed(log: str) -> set[int]:
    """The versions whose files the compiler's errors are in."""
    places = re.findall(r"^(?:\./)?version_(\d)/[^\n]*\berror\b", log, re.MULTILINE)
    return {int(number) for number in places}
