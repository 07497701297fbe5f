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


def _ahead(rows: int) -> tuple[str, str]:
    return "constexpr int AHEAD = 2; ", f"constexpr int AHEAD = {rows}; "


def _blocks(count: int) -> tuple[str, str]:
    bounds = "__global__ void __launch_bounds__(BW_THREADS, {})\n    ker_ln_bw_split"
    return bounds.format(2), bounds.format(count)


def _softmax(length: int, group: int, keys: int) -> tuple[tuple[str, str], ...]:
    text = (REFERENCE / SOFTMAX).read_text()
    (line,) = (line for line in text.splitlines() if f"(length <= {length})" in line)
    return ((line, f"{line.partition('launch(')[0]}launch(Bucket<{group}, {keys}>{{}});"),)


_MASK_FIRST = (
    """#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int key = (c * B::GROUP + lane) * WIDTH;
      float added[WIDTH] = {};
      if (key < visible) load(added, mask + key);
#pragma unroll
      for (int w = 0; w < WIDTH; ++w) value[c][w] += added[w];
    }
""",
    """    float added[CHUNKS][WIDTH] = {};
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int key = (c * B::GROUP + lane) * WIDTH;
      if (key < visible) load(added[c], mask + key);
    }
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
      for (int w = 0; w < WIDTH; ++w) value[c][w] += added[c][w];
    }
""",
)

CANDIDATES = (
    Candidate("sf-512-32x16", SF, _softmax(512, 32, 16), "8x8x512: 96 %, as it was: the compiler takes the four pieces of the mask through one register.", SOFTMAX),
    Candidate("sf-512-32x16-mask-first", SF, (*_softmax(512, 32, 16), _MASK_FIRST), "8x8x512: 99 %: all pieces of the mask are asked for before the first is added.", SOFTMAX),
    Candidate("sb-512-32x16", SB, _softmax(512, 32, 16), "32768x512: no change.", SOFTMAX),
    Candidate("lb-ahead-4", LB, (_ahead(4), _blocks(1)), "5120x256: 67 %, 1024x256: 80 %: more rows under way, and fewer blocks per multiprocessor."),
)  # fmt: skip
