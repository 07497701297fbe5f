"""Findings in kernels of Triton, in its words: programs and masks instead of blocks and threads."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.records.findings import Finding

_THREAD = re.compile(r"thread \([\d,]+\) of block (\([\d,]+\))")
_WORDS = (
    (re.compile(r"\bblock (\([\d,]+\))"), r"program \1"),
    (re.compile(r"\b__sync(?:threads|warp)\(\)"), "tl.debug_barrier()"),
    (
        re.compile(r"blocks run in any order; use an atomic, another launch or a fence and a flag"),
        "programs run in any order; use an atomic operation such as tl.atomic_add, or another launch",
    ),
)
_MASK = "; the mask of this access is missing, or lets too much through"
_CHUNK = ", or it is a store by a descriptor, which a GPU makes 16 bytes at a time"
_BEHIND = re.compile(r" (?:writes|updates) .* which lies (\d|1[0-5]) bytes? behind the end ")


def in_words_of_triton(finding: Finding, *, descriptors: bool = True) -> Finding:
    """The finding as it is, unless its line is one of Python; then with a message for who writes Triton.

    Args:
        finding: of any kernel.
        descriptors: whether its file may use descriptors of tensors.
    """
    if not finding.file.endswith(".py"):
        return finding
    programs: list[str] = []

    def name(thread: re.Match[str]) -> str:
        programs.append(thread[1])
        return f"program {thread[1]}" if thread[1] not in programs[:-1] else "another of its threads"

    message = _THREAD.sub(name, finding.message)
    for pattern, words in _WORDS:
        message = pattern.sub(words, message)
    if finding.kind == "global_oob":
        message += _MASK + _CHUNK * (descriptors and _BEHIND.search(message) is not None)
    return replace(finding, message=message)
