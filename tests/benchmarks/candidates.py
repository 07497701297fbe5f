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


_FORWARD_1024 = "  else if (hidden_dim <= 1024) launch(Bucket<32, 8>{});\n  else if (hidden_dim <= 2048) launch(Bucket<128, 4>"
_STREAM_OUT = ("      store(y + column, value[c]);\n", "      store_once(y + column, value[c]);\n")
_STORE_ONCE = (
    '#include "row.cuh"\n',
    """#include "row.cuh"

// Nobody reads it again soon: the first to leave the caches.
__device__ inline void store_once(float* to, const float (&from)[4]) {
  __stcs(reinterpret_cast<float4*>(to), make_float4(from[0], from[1], from[2], from[3]));
}
""",
)


def _forward(group: int, chunks: int) -> tuple[str, str]:
    return _FORWARD_1024, _FORWARD_1024.replace("Bucket<32, 8>", f"Bucket<{group}, {chunks}>")


# Column blocks of whole lines of 128 bytes; several of them share the rows of one slab, and the last adds up.
_TILES = (
    (
        "constexpr int SLAB = 8;                   // columns of a column block: 32 bytes, the least that memory hands out\n",
        """constexpr int SLAB = 32;                  // columns of a column block: a line of 128 bytes
constexpr int MOST_PARTS = 32;            // column blocks that share a slab
""",
    ),
    (
        "__device__ float partials[MOST_PARTIALS];  // per block: H sums of dy * xhat, then H sums of dy\n",
        """__device__ float partials[MOST_PARTIALS];  // per block: H sums of dy * xhat, then H sums of dy
__device__ float slab_partials[8192 / SLAB][MOST_PARTS][2 * SLAB];
__device__ unsigned tickets[8192 / SLAB];  // parts of a slab that are done; back at 0 when all are
""",
    ),
    ("const float* vars, const float* means, int rows, int columns) {\n  constexpr int LANES = SLAB / 4, WARPS",
     "const float* vars, const float* means, int rows, int columns, int parts) {\n  constexpr int LANES = SLAB / 4, WARPS"),
    (
        "  __shared__ float shared[WARPS][2 * SLAB];\n  const int column = blockIdx.x * SLAB + threadIdx.x % LANES * 4;\n",
        """  __shared__ float shared[WARPS][2 * SLAB];
  __shared__ bool last;
  const int slab = blockIdx.x / parts, part = blockIdx.x % parts;
  const int column = slab * SLAB + threadIdx.x % LANES * 4;
""",
    ),
    (
        "    for (int row = threadIdx.x / LANES; row < rows; row += BW_THREADS / LANES) {\n",
        """    for (int row = part * (BW_THREADS / LANES) + threadIdx.x / LANES; row < rows;
         row += parts * (BW_THREADS / LANES)) {
""",
    ),
    (
        """  if (threadIdx.x < 2 * SLAB) {
    float total = 0.0f;
    for (int warp = 0; warp < WARPS; ++warp) total += shared[warp][threadIdx.x];
    const int out = blockIdx.x * SLAB + threadIdx.x % SLAB;
""",
        """  float total = 0.0f;
  if (threadIdx.x < 2 * SLAB) {
    for (int warp = 0; warp < WARPS; ++warp) total += shared[warp][threadIdx.x];
  }
  if (parts > 1) {
    if (threadIdx.x < 2 * SLAB) {
      slab_partials[slab][part][threadIdx.x] = total;
      __threadfence();
    }
    __syncthreads();
    if (threadIdx.x == 0) last = atomicInc(&tickets[slab], parts - 1) == parts - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    if (threadIdx.x < 2 * SLAB) {
      total = 0.0f;
#pragma unroll 8
      for (int p = 0; p < parts; ++p) total += __ldcg(&slab_partials[slab][p][threadIdx.x]);
    }
  }
  if (threadIdx.x < 2 * SLAB) {
    const int out = slab * SLAB + threadIdx.x % SLAB;
""",
    ),
    ("                    unsigned column_blocks) {\n", "                    unsigned column_blocks, int parts) {\n"),
    (
        "out_grad, inp, vars, means, rows, columns);\n    return;\n",
        "out_grad, inp, vars, means, rows, columns, parts);\n    return;\n",
    ),
    (
        "      const unsigned column_blocks = blocks_for(hidden_dim, SLAB);\n",
        """      const int wanted = batch_size / ROWS_PER_PART;
      const int parts = wanted < 1 ? 1 : wanted < MOST_PARTS ? wanted : MOST_PARTS;
      const unsigned column_blocks = blocks_for(hidden_dim, SLAB) * parts;
      const Turn turn(stream_1);
""",
    ),
    (
        "vars, means, batch_size, hidden_dim, column_blocks);\n      return;\n",
        "vars, means, batch_size, hidden_dim, column_blocks, parts);\n      return;\n",
    ),
)  # fmt: skip


def _tiles(rows_per_part: int) -> tuple[tuple[str, str], ...]:
    return tuple((old, new.replace("ROWS_PER_PART", str(rows_per_part))) for old, new in _TILES)


_MOST_PARTS = "constexpr int MOST_PARTS = 32; "
_STCS_BACKWARD = ("      store(inp_grad + ", "      store_once(inp_grad + ")
_COLUMN_LOOP = """#pragma unroll 4
    for (int row = threadIdx.x / LANES; row < rows; row += BW_THREADS / LANES) {
      const size_t at = static_cast<size_t>(row) * columns + column;
      float x[4], dy[4];
      load(x, inp + at);
      load(dy, out_grad + at);
      const float mean = means[row], inverse_sigma = rsqrtf(vars[row] + EPSILON);
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        sum[w] += dy[w] * ((x[w] - mean) * inverse_sigma);
        sum[4 + w] += dy[w];
      }
    }
"""
_BATCHED_LOOP = """    constexpr int STEP = BW_THREADS / LANES;
    for (int first = threadIdx.x / LANES; first < rows; first += AHEAD * STEP) {
      float x[AHEAD][4] = {}, dy[AHEAD][4] = {}, mean[AHEAD] = {}, variance[AHEAD] = {};  // no row: adds 0
#pragma unroll
      for (int a = 0; a < AHEAD; ++a) {
        const int row = first + a * STEP;
        if (row < rows) {
          const size_t at = static_cast<size_t>(row) * columns + column;
          load(x[a], inp + at);
          load(dy[a], out_grad + at);
          mean[a] = means[row];
          variance[a] = vars[row];
        }
      }
#pragma unroll
      for (int a = 0; a < AHEAD; ++a) {
        const float inverse_sigma = rsqrtf(variance[a] + EPSILON);
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          sum[w] += dy[a][w] * ((x[a][w] - mean[a]) * inverse_sigma);
          sum[4 + w] += dy[a][w];
        }
      }
    }
"""


def _batch(ahead: int) -> tuple[tuple[str, str], ...]:
    return ((_COLUMN_LOOP, _BATCHED_LOOP.replace("AHEAD", str(ahead))),)


_TWO = (
    "__global__ void __launch_bounds__(BW_THREADS)\n    ker_ln_bw_split",
    "__global__ void __launch_bounds__(BW_THREADS, 2)\n    ker_ln_bw_split",
)


def _slab(columns: int) -> tuple[str, str]:
    return "constexpr int SLAB = 8;  ", f"constexpr int SLAB = {columns};  "


_PIECE = (
    "      load(piece.x[c], inp + start + column);\n      load(piece.dy[c], out_grad + start + column);\n"
)

# Scale and bias are on their way with the row instead of after both sums: the stores of means and vars might alias
# them as far as the compiler knows, so it cannot move their loads up.
_EARLY = (
    (
        "  float value[CHUNKS][4] = {};\n",
        "  float value[CHUNKS][4] = {}, gamma[CHUNKS][4], beta[CHUNKS][4];\n",
    ),
    (
        "    if (column < columns) load(value[c], x + column);\n",
        """    if (column < columns) {
      load(value[c], x + column);
      load(gamma[c], scale + column);
      load(beta[c], bias + column);
    }
""",
    ),
    (
        "      float gamma[4], beta[4];\n      load(gamma, scale + column);\n      load(beta, bias + column);\n",
        "",
    ),
    (
        "value[c][w] * inverse_sigma * gamma[w] + beta[w];",
        "value[c][w] * inverse_sigma * gamma[c][w] + beta[c][w];",
    ),
)

CANDIDATES = (
    Candidate(
        "ln-early",
        LN,
        _EARLY,
        "1024x256: 88 -> 96 %. Each call meets scale and bias cold: 0.3 us of the 3.1 are a second trip to memory after "
        "the sums. From 1024 columns on worse: 64 registers more per thread leave room for fewer rows at a time.",
    ),
    Candidate(
        "ln-early-128x2",
        LN,
        (*_EARLY, _forward(128, 2)),
        "1024x256 as ln-early; 8192x1024 as ln-128x2, as 16 registers more do not count there.",
    ),
    Candidate(
        "ln-early-64",
        LN,
        (
            *_EARLY,
            (
                "  else if (hidden_dim <= 256) launch(Bucket<32, 2>{});\n  else if (hidden_dim <= 512) launch(Bucket<32, 4>{});\n"
                + _FORWARD_1024.partition("\n")[0],
                "  else if (hidden_dim <= 256) launch(Bucket<64, 1>{});\n  else if (hidden_dim <= 512) launch(Bucket<64, 2>{});\n  else if (hidden_dim <= 1024) launch(Bucket<64, 4>{});",
            ),
        ),
        "1024x256: 1 % under ln-early. Twice the warps have half the loads each, but two warps of a row meet twice.",
    ),
    Candidate(
        "ln-128x2",
        LN,
        (_forward(128, 2),),
        "8192x1024: 94.2 -> 97 % of the stream. A warp per row keeps 32 values per thread: 2048 blocks are 1.7 waves, "
        "and the second is badly filled. With 8 values per thread the 8192 blocks are 3.9 waves of small pieces.",
    ),
    Candidate(
        "ln-64x4",
        LN,
        (_forward(64, 4),),
        "8192x1024: 96 %. Half the barriers' cost of ln-128x2 (two warps meet, not four), half of its granularity.",
    ),
    Candidate(
        "ln-256x1",
        LN,
        (_forward(256, 1),),
        "8192x1024: 95 %. One load in flight per thread: full occupancy has to hide all of the latency.",
    ),
    Candidate(
        "ln-128x2-stcs",
        LN,
        (_forward(128, 2), _STORE_ONCE, _STREAM_OUT),
        "0 to 1 % over ln-128x2 at every large shape: outputs leave the L2 first, so inputs of the next blocks and "
        "scale and bias stay. No change at small shapes, where outputs fit.",
    ),
    Candidate(
        "lb-tiles-256",
        LB,
        _tiles(256),
        "1024x256: 64.8 -> 68 %, 5120x256: 60.2 -> 75 %. A column block of 8 columns touches a line of 128 bytes per "
        "row and array to use 32 bytes of it: 2 x 5120 lines through one L1 take about 6 us of the 12. A slab of 32 "
        "columns uses whole lines, and 20 blocks share its rows; the last one adds up (a microsecond more).",
    ),
    Candidate(
        "lb-tiles-128",
        LB,
        _tiles(128),
        "1024x256: 70 %, 5120x256: 75 %. As lb-tiles-256 with twice the blocks: at 1024 rows two loads per thread "
        "instead of four before the sums.",
    ),
    Candidate(
        "lb-slab-16",
        LB,
        (_slab(16),),
        "5120x256: 60 -> 58 %. As many lines per block as before and half the blocks, but half the lines in all: "
        "if this is faster, the L2 and not the L1 is what column blocks wait for.",
    ),
    Candidate(
        "lb-batch-4",
        LB,
        _batch(4),
        "1024x256: 77 -> 88 %, 5120x256: 64 -> 70 %. The compiler keeps two loads in flight where the loop is unrolled "
        "four times: 1024 rows are four trips to memory one after the other, and become one.",
    ),
    Candidate(
        "lb-batch-8",
        LB,
        _batch(8),
        "5120x256: 64 -> 78 %: three trips in place of ten. 1024x256: as lb-batch-4, the other half has no rows.",
    ),
    Candidate(
        "lb-batch-4-two",
        LB,
        (*_batch(4), _TWO),
        "5120x256: 76 %, more than lb-batch-4: with 78 registers one block of 512 threads fits a multiprocessor, with 64 "
        "two, and the 640 blocks of rows hide each other's trips.",
    ),
    Candidate(
        "lb-batch-4-two-slab-4",
        LB,
        (*_batch(4), _TWO, _slab(4)),
        "5120x256: 80 %: three trips. 1024x256: -1 %: what the L2 hands out is half for the neighbour.",
    ),
    Candidate(
        "lb-batch-2-two",
        LB,
        (*_batch(2), _TWO),
        "1024x256: 82 %, two trips; 5120x256: 68 %.",
    ),
    Candidate(
        "lb-batch-4-two-stcs",
        LB,
        (*_batch(4), _TWO, _STORE_ONCE, _STCS_BACKWARD),
        "As lb-batch-4-two, and large shapes as lb-stcs.",
    ),
    Candidate(
        "lb-tiles-128-stcs",
        LB,
        (*_tiles(128), _STORE_ONCE, _STCS_BACKWARD),
        "5120x256: 73 -> 74 %: gradients leave the L2, in which the second readers look.",
    ),
    Candidate(
        "lb-tiles-64",
        LB,
        (*_tiles(64), (_MOST_PARTS, _MOST_PARTS.replace("32", "64"))),
        "5120x256: 73 -> 75 %: one step of two loads per thread; the last block adds up 64 parts instead of 32.",
    ),
    Candidate(
        "lb-stcs",
        LB,
        (_STORE_ONCE, _STCS_BACKWARD),
        "8192x1024: 90.2 -> 92 %, others by less: gradients leave the L2 first, so that the next inputs find room.",
    ),
    Candidate(
        "lb-loads-last",
        LB,
        (
            (
                _PIECE,
                """      const float4 x = __ldcs(reinterpret_cast<const float4*>(inp + start + column));
      const float4 dy = __ldcs(reinterpret_cast<const float4*>(out_grad + start + column));
      load(piece.x[c], reinterpret_cast<const float*>(&x));
      load(piece.dy[c], reinterpret_cast<const float*>(&dy));
""",
            ),
        ),
        "Within 1 % everywhere: what is read once by ker_ln_bw_fused leaves first. At small shapes worse, since "
        "ker_ln_bw_split wants its second reader to find it in the L2.",
    ),
    Candidate(
        "lb-256-threads",
        LB,
        (("constexpr int BW_THREADS = 512;", "constexpr int BW_THREADS = 256;"),
         ("__launch_bounds__(BW_THREADS, CHUNKS == 1 ? 2 : 1)", "__launch_bounds__(BW_THREADS, CHUNKS == 1 ? 4 : 2)"),
         ("multiprocessors * (B::CHUNKS == 1 ? 2 : 1)", "multiprocessors * (B::CHUNKS == 1 ? 4 : 2)"),
         ("  else if (hidden_dim <= 2048) launch(Bucket<512, 1>{});\n  else if (hidden_dim <= 4096) launch(Bucket<512, 2>{});\n  else if (hidden_dim <= 8192) launch(Bucket<512, 4>{});\n}\n",
          "  else if (hidden_dim <= 2048) launch(Bucket<256, 2>{});\n  else if (hidden_dim <= 4096) launch(Bucket<256, 4>{});\n  else if (hidden_dim <= 8192) launch(Bucket<256, 8>{});\n}\n")),
        "8192x1024: 90.2 -> 92 %. Twice the blocks that wait at barriers of half the threads; twice the partial sums, "
        "8 MB of them in all, cost less than that.",
    ),
)  # fmt: skip
