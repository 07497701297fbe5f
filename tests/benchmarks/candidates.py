"""Versions of the reference that may be faster: each is a few edits, with what they are expected to change.

None of them is in ``reference/`` before it has been measured. ``kernels.py`` times them beside the reference;
the outcome goes into docs/kernels.md, and an edit that won into the reference.
"""

# ruff: noqa: E501 - edits quote the source as it stands

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

REFERENCE = Path(__file__).parents[2] / "reference"


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


_PAIRS = """
// Two rows that share their mask, for each group: it is loaded half as often.
template <class B, int WIDTH>
__global__ void __launch_bounds__(B::THREADS)
    ker_attn_softmax_pairs(float* inp, const float* attn_mask, int rows, int rows_per_mask, int to_len) {
  constexpr int ROWS = 2, CHUNKS = B::KEYS / WIDTH;
  __shared__ float maxima[ROWS][MOST_WARPS], sums[ROWS][MOST_WARPS];
  const unsigned first = (blockIdx.x * B::ROWS + threadIdx.x / B::GROUP) * ROWS;
  const int lane = threadIdx.x % B::GROUP, length = first < static_cast<unsigned>(rows) ? to_len : 0;
  float* x = inp + static_cast<size_t>(first) * to_len;

  float value[ROWS][CHUNKS][WIDTH], added[CHUNKS][WIDTH] = {};
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int key = (c * B::GROUP + lane) * WIDTH;
#pragma unroll
      for (int w = 0; w < WIDTH; ++w) value[r][c][w] = -INFINITY;
      if (key < length) load(value[r][c], x + static_cast<size_t>(r) * to_len + key);
    }
  }
  const float* mask = attn_mask + static_cast<size_t>(first / rows_per_mask) * to_len;
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const int key = (c * B::GROUP + lane) * WIDTH;
    if (key < length) load(added[c], mask + key);
  }
  float largest[ROWS] = {-INFINITY, -INFINITY}, sum[ROWS] = {};
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
      for (int w = 0; w < WIDTH; ++w) {
        value[r][c][w] += added[c][w];
        largest[r] = fmaxf(largest[r], value[r][c][w]);
      }
    }
  }
  reduce<Max, B::GROUP>(largest, maxima);
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const float shift = largest[r] == -INFINITY ? 0.0f : largest[r];
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
      for (int w = 0; w < WIDTH; ++w) {
        value[r][c][w] = expf(value[r][c][w] - shift);
        sum[r] += value[r][c][w];
      }
    }
  }
  reduce<Sum, B::GROUP>(sum, sums);
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const float scale = 1.0f / (sum[r] + EPSILON);
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int key = (c * B::GROUP + lane) * WIDTH;
#pragma unroll
      for (int w = 0; w < WIDTH; ++w) value[r][c][w] *= scale;
      if (key < length) store(x + static_cast<size_t>(r) * to_len + key, value[r][c]);
    }
  }
}
"""
_BACKWARD = """
template <class B, int WIDTH>
__global__ void __launch_bounds__(B::THREADS)
    ker_attn_softmax_bw("""
_ONE_BY_ONE = """    using B = decltype(bucket);
    if constexpr (B::GROUP >= 256) {
      if (mask_future) {"""


def _pairs(least: int, prediction: str) -> Candidate:
    """Pairs of rows in groups of at least so many threads."""
    launch = f"""    using B = decltype(bucket);
    if constexpr (B::GROUP >= {least} && B::KEYS == 8) {{
      if (attn_mask != nullptr && !mask_future && rows_per_mask % 2 == 0) {{
        ker_attn_softmax_pairs<B, WIDTH>
            <<<blocks_for(rows, 2 * B::ROWS), B::THREADS, 0, stream>>>(inp, attn_mask, rows, rows_per_mask, to_len);
        return;
      }}
    }}
    if constexpr (B::GROUP >= 256) {{
      if (mask_future) {{"""
    return Candidate(
        f"sf-pairs-{least}",
        "softmax_forward",
        ((_BACKWARD, _PAIRS + _BACKWARD), (_ONE_BY_ONE, launch)),
        prediction,
        "softmax_kernel.cu",
    )


CANDIDATES = (
    _pairs(64, "512 keys: 102.5 of 102; 1024 and 2048 keys: 100.3 of 99.9, as Liger, which takes no mask"),
    _pairs(8, "2 x 8 x 64 x 64: 103 as before, because half as many warps wait for memory as long"),
    Candidate(
        "lb-fence",
        "layernorm_backward",
        (
            (
                "          variance[a] = vars[row];\n        }\n      }\n",
                "          variance[a] = vars[row];\n        }\n      }\n      __threadfence_block();\n",
            ),
        ),
        "5120 x 256: 71.5 of 70.5, 1024 x 256: 73 of 71: statistics of two rows asked for before either is used",
    ),
)
