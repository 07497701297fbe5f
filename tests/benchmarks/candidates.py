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
// A warp takes ROWS rows of full width: scale and bias are loaded once for all of them. No load depends on a condition,
// so all of them come first; a row past the end is the last one once more.
template <int CHUNKS, int ROWS, int THREADS>
__global__ void __launch_bounds__(THREADS)
    ker_layer_norm_rows(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                        const float* bias, int rows) {
  constexpr int HIDDEN = CHUNKS * 128;
  __shared__ float sums[ROWS][MOST_WARPS], squares[ROWS][MOST_WARPS];
  const int first = (blockIdx.x * (THREADS / 32) + threadIdx.x / 32) * ROWS, lane = threadIdx.x % 32;
  size_t start[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) start[r] = static_cast<size_t>(min(first + r, rows - 1)) * HIDDEN + lane * 4;

  float value[ROWS][CHUNKS][4], gamma[CHUNKS][4], beta[CHUNKS][4];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) load(value[r][c], inp + start[r] + c * 128);
  }
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    load(gamma[c], scale + c * 128 + lane * 4);
    load(beta[c], bias + c * 128 + lane * 4);
  }
  __threadfence_block();  // or the compiler puts the loads of scale and bias behind the sums: a second trip to memory
  float mean[ROWS] = {}, variance[ROWS] = {};
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c)
      mean[r] += (value[r][c][0] + value[r][c][1]) + (value[r][c][2] + value[r][c][3]);
  }
  reduce<Sum, 32>(mean, sums);
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    mean[r] *= 1.0f / HIDDEN;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        value[r][c][w] -= mean[r];
        variance[r] += value[r][c][w] * value[r][c][w];
      }
    }
  }
  reduce<Sum, 32>(variance, squares);
  float mine[2] = {};
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    variance[r] *= 1.0f / HIDDEN;
    if (lane == r) {
      mine[0] = mean[r];
      mine[1] = variance[r];
    }
    const float inverse_sigma = rsqrtf(variance[r] + EPSILON);
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
      for (int w = 0; w < 4; ++w) value[r][c][w] = value[r][c][w] * inverse_sigma * gamma[c][w] + beta[c][w];
    }
  }
  if (lane < ROWS && first + lane < rows) {
    means[first + lane] = mine[0];
    vars[first + lane] = mine[1];
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) store(ln_res + start[r] + c * 128, value[r][c]);
  }
}
"""
_BACKWARD = "// --------------------------------------------------------------------------------------------------------- backward\n"
_FORWARD_256 = "else if (hidden_dim <= 128) launch(Bucket<32, 1>{});\n  else if (hidden_dim <= 256) launch(Bucket<32, 2>{});"


def _several(rows: int, threads: int, prediction: str) -> Candidate:
    """Warps that take ``rows`` rows of 256 columns each where there are many, in blocks of ``threads``."""
    call = (
        "else if (hidden_dim <= 128) launch(Bucket<32, 1>{});\n  else if (hidden_dim == 256 && batch_size >= 4096)\n"
        f"    ker_layer_norm_rows<2, {rows}, {threads}>\n"
        f"        <<<blocks_for(batch_size, {threads} / 32 * {rows}), {threads}, 0, stream>>>(\n"
        "            ln_res, vars, means, inp, scale, bias, batch_size);\n"
        "  else if (hidden_dim <= 256) launch(Bucket<32, 2>{});"
    )
    return Candidate(
        f"lf-full-{rows}-{threads}",
        "layernorm_forward",
        ((_BACKWARD, _ROWS.lstrip() + "\n" + _BACKWARD), (_FORWARD_256, call)),
        prediction,
    )


CANDIDATES = (
    _several(4, 32, "5120 x 256: 102.5 % of 101.7, as torch.compile"),
    _several(2, 64, "5120 x 256: 102.2 %: half as much on its way for a thread, twice as many threads"),
    _several(2, 128, "5120 x 256: 102.2 %"),
    Candidate(
        "lf-fence",
        "layernorm_forward",
        (("  float sum[1] = {0.0f};\n", "  __threadfence_block();\n  float sum[1] = {0.0f};\n"),),
        "within 0.5 % everywhere: the loads stand first already",
    ),
)
