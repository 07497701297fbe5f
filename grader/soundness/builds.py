"""Builds several versions of one kernel with one call of nvcc, which saves most of the time of each.

Each version stands in a namespace of its own, and so does a version that is built alone: its names in the PTX
are the same but for the number.

Layer: imports languages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from grader.languages.cuda.compile import build
from grader.languages.jobs import compile_limits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from grader.languages.cache import Cache
    from grader.languages.language import Build
    from grader.problems.problem import KernelProblem
    from grader.run.bench import Machine

TOGETHER = 8  # one digit, so that all names have the same length
PTX_ONLY = (
    "compute_80"  # as architecture: the simulator needs no machine code, and ptxas takes half of a build
)
MAIN = "versions.cu"
_SYSTEM_HEADER = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<.*>", re.MULTILINE)
_GUARD = re.compile(r"#ifndef\s+(?P<name>\w+)\s*\n\s*#define\s+(?P=name)\s*\n")
_FIRST_LINES = (
    '#pragma GCC optimize("O0")',  # of the host's part: a quarter of the time, for launchers
    "#include <cuda_runtime.h>",
    "#include <cuda_fp16.h>",  # for edits that need it
)


@dataclass(frozen=True)
class Version:
    """One version of a kernel, built.

    Attributes:
        library: that it is in; None where it does not compile.
        number: of the version there.
        log: why it does not compile.
    """

    library: Path | None
    number: int
    log: str = ""

    def answering(self, problem: KernelProblem) -> KernelProblem:
        """``problem`` under the names of the launchers of this version."""
        types = {
            dtype: replace(launcher, entry_point=f"{launcher.entry_point}_{self.number}")
            for dtype, launcher in problem.launchers.items()
        }
        return replace(problem, entry_point=f"{problem.entry_point}_{self.number}", launchers=types)


@dataclass(frozen=True)
class Builder:
    """Builds versions of kernels on a machine, and keeps the builds in a cache."""

    machine: Machine
    cache: Cache

    def versions(self, problem: KernelProblem, texts: Sequence[Mapping[str, str]]) -> list[Version]:
        """Build up to ``TOGETHER`` versions of the launchers of ``problem``, each its files by name.

        Where one does not compile, the others are built without it.

        Raises:
            BuildError: the machine failed.
        """
        versions: dict[int, Version] = {}
        pending = list(range(len(texts)))
        while pending:
            built = self._build({number: texts[number] for number in pending}, problem)
            if built.artefact is not None:
                good = {number: Version(built.artefact, number) for number in pending}
                return list(dict(sorted({**versions, **good}.items())).values())
            blamed = _blamed(built.log) & {*pending}
            if len(pending) == 1 or not blamed:
                break
            versions |= {number: Version(None, number, built.log) for number in blamed}
            pending = [number for number in pending if number not in blamed]
        if len(pending) > 1:  # nobody is named, so each is tried alone
            for number in pending:
                alone = self._build({number: texts[number]}, problem)
                versions[number] = Version(alone.artefact, number, alone.log)
        elif pending:
            versions[pending[0]] = Version(None, pending[0], built.log)
        return [versions[number] for number in range(len(texts))]

    def _build(self, texts: Mapping[int, Mapping[str, str]], problem: KernelProblem) -> Build:
        return build(
            MAIN,
            {name: text.encode() for name, text in together(texts, problem.file, problem.entry_points)},
            self.machine.toolchain,
            self.machine.sandbox,
            compile_limits(180.0 * len(texts)),
            self.cache,
            PTX_ONLY,
        )


def together(
    texts: Mapping[int, Mapping[str, str]], file: str, entry_points: Collection[str]
) -> Iterator[tuple[str, str]]:
    """The files of a build of several versions, by their numbers: each in a folder and a namespace.

    Lines stay what they are; a header that all have is a different one to each.
    """
    lines = dict.fromkeys(_FIRST_LINES)  # no header of the system inside of a namespace
    for number, version in texts.items():
        for name, text in version.items():
            lines |= dict.fromkeys(line.strip() for line in _SYSTEM_HEADER.findall(text))
            yield f"version_{number}/{name}", _included_again(text, number)
    main = list(lines)
    for number in texts:
        main += [
            *(f"#define {name} {name}_{number}" for name in entry_points),
            f"namespace version_{number} {{",
            f'#include "version_{number}/{file}"',
            "}",
            *(f"#undef {name}" for name in entry_points),
        ]
    yield MAIN, "\n".join([*main, ""])


def _included_again(text: str, number: int) -> str:
    """A file that does not keep other versions of itself from being included."""
    guard = _GUARD.search(text)
    text = text.replace("#pragma once", "")
    return text if guard is None else re.sub(rf"\b{guard['name']}\b", f"{guard['name']}_{number}", text)


def _blamed(log: str) -> set[int]:
    """The versions whose files the compiler's errors are in."""
    files = re.findall(r"^(?:\./)?version_(\d)/[^\n]*\berror\b", log, re.MULTILINE)
    return {int(number) for number in files}
