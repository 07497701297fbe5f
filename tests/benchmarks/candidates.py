"""Versions of the reference that may be faster: each is a few edits, with what they are expected to change.

None of them is in ``reference/`` before it has been measured. ``kernels.py`` times them beside the reference; the
outcome goes into docs/timing.md, and an edit that won into the reference.
"""

# ruff: noqa: E501 - edits quote the source as it stands

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

REFERENCE = Path(__file__).parents[2] / "reference"
LN, LB = "layernorm_forward", "layernorm_backward"


@dataclass(frozen=True)
class Candidate:
    """Edits of one file: each pair's first text occurs there exactly once and becomes the second.

    Attributes:
        id: its name.
        problem: what it may speed up.
        edits: pairs of old and new text.
        prediction: what will happen on an H100, and why.
        file: of the reference.
    """

    id: str
    problem: str
    edits: tuple[tuple[str, str], ...]
    prediction: str
    file: str = "layernorm_kernel.cu"

    def text(self) -> str:
        """The edited file.

        Raises:
            ValueError: a text does not occur exactly once.
        """
        text = (REFERENCE / self.file).read_text()
        for old, new in self.edits:
            if text.count(old) != 1:
                raise ValueError(f"{self.id}: {old!r} occurs {text.count(old)} times in {self.file}")
            text = text.replace(old, new)
        return text


SF, SB = "softmax_forward", "softmax_backward"
SOFTMAX = "softmax_kernel.cu"


def _threads(count: int) -> tuple[tuple[str, str], ...]:
    return (
        (
            "constexpr int threads = B::GROUP > 128 ? B::GROUP : 128;",
            f"constexpr int threads = B::GROUP > {count} ? B::GROUP : {count};",
        ),
    )


def _ahead(rows: int) -> tuple[str, str]:
    return "constexpr int AHEAD = 2; ", f"constexpr int AHEAD = {rows}; "


def _blocks(count: int) -> tuple[str, str]:
    bounds = "__global__ void __launch_bounds__(BW_THREADS, {})\n    ker_ln_bw_split"
    return bounds.format(2), bounds.format(count)


def _slab(columns: int) -> tuple[str, str]:
    return "constexpr int SLAB = 8;  ", f"constexpr int SLAB = {columns};  "


def _softmax(length: int, group: int, keys: int) -> tuple[tuple[str, str], ...]:
    text = (REFERENCE / SOFTMAX).read_text()
    (line,) = (line for line in text.splitlines() if f"(length <= {length})" in line)
    return ((line, f"{line.partition('launch(')[0]}launch(Bucket<{group}, {keys}>{{}});"),)


CANDIDATES = (
    Candidate("sf-40-8x8", SF, (*_softmax(64, 8, 8), ("if constexpr (B::GROUP == 8) {", "if constexpr (B::KEYS == 4 && B::GROUP == 8) {")), "32x8x40x40: of 16 threads per row six idle; of eight, none, and two loads are under way in two of them: +2 %.", SOFTMAX),
    Candidate("sb-40-8x8", SB, _softmax(64, 8, 8), "10240x40: no change, it is above the stream.", SOFTMAX),
    Candidate("sf-2048-256x8", SF, _softmax(2048, 256, 8), "8x8x2048: +0.3 %, as 128x8 brought up to 1024 keys.", SOFTMAX),
    Candidate("lb-ahead-4", LB, (_ahead(4), _blocks(1)), "5120x256: 67 %, 1024x256: 80 %, as measured before."),
)  # fmt: skip
