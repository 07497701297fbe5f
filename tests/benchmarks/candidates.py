"""Versions of the reference that may be faster: each is a few edits, with what they are expected to change.

None of them is in ``reference/`` before it has been measured. ``kernels.py`` times them beside the reference; the
outcome goes into docs/timing.md, and an edit that won into the reference.
"""

# ruff: noqa: E501 - edits quote the source as it stands

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

REFERENCE = Path(__file__).parents[2] / "reference"
LN = "layernorm_forward"


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


_ONE_MEETING = (
    (
        "  __shared__ float sums[1][MOST_WARPS], squares[1][MOST_WARPS];\n",
        "  __shared__ float sums[2][MOST_WARPS];\n",
    ),
    (
        """  float sum[1] = {0.0f};
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) sum[0] += (value[c][0] + value[c][1]) + (value[c][2] + value[c][3]);
  reduce<Sum, GROUP>(sum, sums);
  const float mean = sum[0] * share;

  float square[1] = {0.0f};
""",
        """  const float shift = __shfl_sync(0xffffffff, ((value[0][0] + value[0][1]) + (value[0][2] + value[0][3])) * 0.25f, 0, GROUP < 32 ? GROUP : 32);
  float sum[2] = {0.0f, 0.0f};
""",
    ),
    (
        """        value[c][w] -= mean;
        square[0] += value[c][w] * value[c][w];
""",
        """        value[c][w] -= shift;
        sum[0] += value[c][w];
        sum[1] += value[c][w] * value[c][w];
""",
    ),
    (
        """  reduce<Sum, GROUP>(square, squares);
  const float variance = square[0] * share;
""",
        """  reduce<Sum, GROUP>(sum, sums);
  const float off = sum[0] * share, mean = shift + off;
  const float variance = sum[1] * share - off * off;
""",
    ),
    ("value[c][w] * inverse_sigma * gamma", "(value[c][w] - off) * inverse_sigma * gamma"),
)  # only for rows of one warp
_THREADS = "constexpr int threads = B::GROUP > 128 ? B::GROUP : 128;"
_THREADS_64 = (_THREADS, _THREADS.replace("128", "64"))
_THREADS_256 = (_THREADS, _THREADS.replace("128", "256"))
_STATISTICS = """  if (lane == 0 && columns > 0) {
    means[row] = mean;
    vars[row] = variance;
  }
"""
_LAST = "      store(y + column, value[c]);\n    }\n  }\n"

CANDIDATES = (
    Candidate("lf-one-meeting", LN, _ONE_MEETING, "5120x256: 102 %: ten shuffles become six, one after the other; rows of several warps wrong."),
    Candidate("lf-64", LN, (_THREADS_64,), "5120x256: 101.5 %: smaller blocks end and begin more evenly."),
    Candidate("lf-256", LN, (_THREADS_256,), "5120x256: 101 %: no change."),
    Candidate("lf-statistics-last", LN, ((_STATISTICS, ""), (_LAST, _LAST + _STATISTICS)), "5120x256: 101.3 %: the row is stored two instructions earlier."),
)  # fmt: skip
