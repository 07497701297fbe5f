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


_WALK = """
// Resident blocks walk over the rows: the next one is on its way while this one is reduced, and scale and bias stay.
template <int GROUP, int CHUNKS>
__global__ void __launch_bounds__(GROUP, 2)
    ker_layer_norm_walk(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                        const float* bias, int rows, int hidden, float share) {
  __shared__ float sums[2][1][MOST_WARPS], squares[2][1][MOST_WARPS];
  float gamma[CHUNKS][4], beta[CHUNKS][4], next[CHUNKS][4] = {};
  const auto each = [=](auto visit) {
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int column = (c * GROUP + threadIdx.x) * 4;
      if (column < hidden) visit(c, column);
    }
  };
  each([&](int c, int column) {
    load(gamma[c], scale + column);
    load(beta[c], bias + column);
    load(next[c], inp + static_cast<size_t>(blockIdx.x) * hidden + column);
  });
  int turn = 0;
  for (int row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {
    float value[CHUNKS][4], sum[1] = {0.0f}, square[1] = {0.0f};
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
      for (int w = 0; w < 4; ++w) value[c][w] = next[c][w];
      sum[0] += (value[c][0] + value[c][1]) + (value[c][2] + value[c][3]);
    }
    if (row + gridDim.x < rows) {
      const float* x = inp + static_cast<size_t>(row + gridDim.x) * hidden;
      each([&](int c, int column) { load(next[c], x + column); });
    }
    reduce<Sum, GROUP>(sum, sums[turn]);
    const float mean = sum[0] * share;
    each([&](int c, int) {
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        value[c][w] -= mean;
        square[0] += value[c][w] * value[c][w];
      }
    });
    reduce<Sum, GROUP>(square, squares[turn]);
    const float variance = square[0] * share, inverse_sigma = rsqrtf(variance + EPSILON);
    if (threadIdx.x == 0) {
      means[row] = mean;
      vars[row] = variance;
    }
    float* y = ln_res + static_cast<size_t>(row) * hidden;
    each([&](int c, int column) {
#pragma unroll
      for (int w = 0; w < 4; ++w) value[c][w] = value[c][w] * inverse_sigma * gamma[c][w] + beta[c][w];
      store(y + column, value[c]);
    });
  }
}
"""
_BACKWARD = "// --------------------------------------------------------------------------------------------------------- backward\n"
_FORWARD_4096 = "else if (hidden_dim <= 2048) launch(Bucket<128, 4>{});\n  else if (hidden_dim <= 4096) launch(Bucket<512, 2>{});"
_WALKED = """else if (hidden_dim <= 2048) launch(Bucket<128, 4>{});
  else if (hidden_dim <= 4096) {
    int device = 0, multiprocessors = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    ker_layer_norm_walk<512, 2><<<batch_size < 2 * multiprocessors ? batch_size : 2 * multiprocessors, 512, 0, stream>>>(
        ln_res, vars, means, inp, scale, bias, batch_size, hidden_dim, 1.0f / hidden_dim);
  }"""

CANDIDATES = (
    Candidate(
        "lf-walk",
        "layernorm_forward",
        ((_BACKWARD, _WALK.lstrip() + "\n" + _BACKWARD), (_FORWARD_4096, _WALKED)),
        "16,384 x 4096: 102 % beside 100 on an H200: two thirds of what a block loads are scale and bias; the last of 62 turns finds most blocks without a row.",
    ),
)
