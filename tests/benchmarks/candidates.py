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


_ROWS = """
// A group takes ROWS rows in turn: scale and bias are loaded once for all of them.
template <int GROUP, int CHUNKS, int ROWS, int THREADS>
__global__ void __launch_bounds__(THREADS)
    ker_layer_norm_rows(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                        const float* bias, int rows, int hidden, float share) {
  __shared__ float sums[ROWS][MOST_WARPS], squares[ROWS][MOST_WARPS];
  const unsigned row = (blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP) * ROWS;
  const int lane = threadIdx.x % GROUP;
  const float* x = inp + static_cast<size_t>(row) * hidden;
  float* y = ln_res + static_cast<size_t>(row) * hidden;
  int columns[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) columns[r] = row + r < static_cast<unsigned>(rows) ? hidden : 0;

  float value[ROWS][CHUNKS][4] = {}, gamma[CHUNKS][4], beta[CHUNKS][4];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int column = (c * GROUP + lane) * 4;
      if (column < columns[r]) {
        load(value[r][c], x + r * hidden + column);
        if (r == 0) {
          load(gamma[c], scale + column);
          load(beta[c], bias + column);
        }
      }
    }
  }
  float sum[ROWS] = {}, mean[ROWS], square[ROWS] = {};
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c)
      sum[r] += (value[r][c][0] + value[r][c][1]) + (value[r][c][2] + value[r][c][3]);
  }
  reduce<Sum, GROUP>(sum, sums);
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    mean[r] = sum[r] * share;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      if ((c * GROUP + lane) * 4 < columns[r]) {
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          value[r][c][w] -= mean[r];
          square[r] += value[r][c][w] * value[r][c][w];
        }
      }
    }
  }
  reduce<Sum, GROUP>(square, squares);
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const float variance = square[r] * share, inverse_sigma = rsqrtf(variance + EPSILON);
    if (lane == 0 && columns[r] > 0) {
      means[row + r] = mean[r];
      vars[row + r] = variance;
    }
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int column = (c * GROUP + lane) * 4;
      if (column < columns[r]) {
#pragma unroll
        for (int w = 0; w < 4; ++w) value[r][c][w] = value[r][c][w] * inverse_sigma * gamma[c][w] + beta[c][w];
        store(y + r * hidden + column, value[r][c]);
      }
    }
  }
}
"""
_BACKWARD = "// --------------------------------------------------------------------------------------------------------- backward\n"
_FORWARD_256 = "else if (hidden_dim <= 128) launch(Bucket<32, 1>{});\n  else if (hidden_dim <= 256) launch(Bucket<32, 2>{});"
_WITH_THE_ROW = """
        if (r == 0) {
          load(gamma[c], scale + column);
          load(beta[c], bias + column);
        }"""
_BETWEEN = """
  reduce<Sum, GROUP>(sum, sums);
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const int column = (c * GROUP + lane) * 4;
    if (column < hidden) {
      load(gamma[c], scale + column);
      load(beta[c], bias + column);
    }
  }"""


def _several(rows: int, threads: int, prediction: str, *, between: bool = False) -> Candidate:
    """Warps that take ``rows`` rows each where there are many, of up to 256 columns, in blocks of ``threads``.

    ``between`` asks for scale and bias after the sums, while the squares are added.
    """
    kernel = _ROWS.lstrip()
    if between:
        kernel = kernel.replace(_WITH_THE_ROW, "").replace("\n  reduce<Sum, GROUP>(sum, sums);", _BETWEEN)
    call = (
        "else if (hidden_dim <= 128) launch(Bucket<32, 1>{});\n  else if (hidden_dim <= 256 && batch_size >= 4096)\n"
        f"    ker_layer_norm_rows<32, 2, {rows}, {threads}>\n"
        f"        <<<blocks_for(batch_size, {threads} / 32 * {rows}), {threads}, 0, stream>>>(\n"
        "            ln_res, vars, means, inp, scale, bias, batch_size, hidden_dim, 1.0f / hidden_dim);\n"
        "  else if (hidden_dim <= 256) launch(Bucket<32, 2>{});"
    )
    return Candidate(
        f"lf-{rows}-rows-{threads}{'-between' if between else ''}",
        "layernorm_forward",
        ((_BACKWARD, kernel + "\n" + _BACKWARD), (_FORWARD_256, call)),
        prediction,
    )


CANDIDATES = (
    _several(2, 128, "5120 x 256: 102.3 % of 101.5: half as many loads of scale and bias"),
    _several(2, 64, "5120 x 256: 102.3 %"),
    _several(4, 32, "5120 x 256: 102.3 %, as torch.compile does it"),
    _several(2, 128, "5120 x 256: 102.6 %: and no row waits behind them", between=True),
    Candidate(
        "lf-between",
        "layernorm_forward",
        (
            ("      load(gamma[c], scale + column);\n      load(beta[c], bias + column);\n", ""),
            (
                "  reduce<Sum, GROUP>(sum, sums);\n  const float mean = sum[0] * share;\n",
                _BETWEEN.lstrip("\n") + "\n  const float mean = sum[0] * share;\n",
            ),
        ),
        "1024 x 256: 99 %, others above 2048 columns 1 less, where scale and bias come from the L2",
    ),
    Candidate(
        "lf-bounds",
        "layernorm_forward",
        (
            (
                "__launch_bounds__(THREADS)\n    ker_layer_norm(",
                "__launch_bounds__(THREADS, 1)\n    ker_layer_norm(",
            ),
        ),
        "the same machine code but for the place of these loads: within 1 % everywhere",
    ),
)
