"""Wrong kernels: each is a right one with one small edit and one reason. All of them must fail.

Most are edits of the reference, some of a variant that is written as students write. ``group`` is a case group that
must fail; ``diagnosis`` a piece of what the judge should say, empty where no rule is expected to know.
"""

# ruff: noqa: E501 - edits quote the source as it stands

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from grader.problems.problem import MEMORY_GROUP

VARIANTS = Path(__file__).parents[1] / "variants"
SOFTMAX, LAYERNORM, ROW = "softmax_kernel.cu", "layernorm_kernel.cu", "row.cuh"
FW, BW, LN, LB = "softmax_forward", "softmax_backward", "layernorm_forward", "layernorm_backward"


FILES = {FW: SOFTMAX, BW: SOFTMAX, LN: LAYERNORM, LB: LAYERNORM}


@dataclass(frozen=True)
class Mutant:
    """One edit of one file: ``old`` occurs there exactly once and becomes ``new``.

    ``file`` is one of the reference, or a variant: ``softmax_forward/online.cu``.
    """

    id: str
    problem: str
    file: str
    theme: str
    old: str
    new: str
    why: str
    group: str
    diagnosis: str = ""
    also: tuple[tuple[str, str], ...] = ()  # what else the edit needs elsewhere in the file

    @property
    def numbers(self) -> bool:
        """Whether outputs must come out wrong; else a finding of a checker is enough."""
        return self.group != MEMORY_GROUP

    @property
    def handed_in(self) -> str:
        """The name of the edited file in a submission."""
        return FILES[self.problem] if "/" in self.file else self.file

    def original(self, reference: Path) -> str:
        """The file before the edit."""
        return ((VARIANTS if "/" in self.file else reference) / self.file).read_text()

    def text(self, reference: Path) -> str:
        """The edited file.

        Raises:
            ValueError: what is to be replaced does not occur exactly once.
        """
        text = self.original(reference)
        for old, new in ((self.old, self.new), *self.also):
            if text.count(old) != 1:
                raise ValueError(f"{self.id}: {old!r} occurs {text.count(old)} times in {self.file}")
            text = text.replace(old, new)
        half = "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n" if self.theme == "precision" else ""
        return half + text


def _fw(name: str, theme: str, old: str, new: str, why: str, group: str, diagnosis: str = "") -> Mutant:
    return Mutant(f"fw-{name}", FW, SOFTMAX, theme, old, new, why, group, diagnosis)


def _bw(name: str, theme: str, old: str, new: str, why: str, group: str, diagnosis: str = "") -> Mutant:
    return Mutant(f"bw-{name}", BW, SOFTMAX, theme, old, new, why, group, diagnosis)


def _ln(name: str, theme: str, old: str, new: str, why: str, group: str, diagnosis: str = "") -> Mutant:
    return Mutant(f"ln-{name}", LN, LAYERNORM, theme, old, new, why, group, diagnosis)


def _lb(name: str, theme: str, old: str, new: str, why: str, group: str, diagnosis: str = "") -> Mutant:
    return Mutant(f"lb-{name}", LB, LAYERNORM, theme, old, new, why, group, diagnosis)


def _row(problem: str, name: str, old: str, new: str, why: str, group: str, diagnosis: str) -> Mutant:
    """An edit of the header that all share, which only ``problem`` is judged with."""
    return Mutant(f"{_SHORT[problem]}-{name}", problem, ROW, "reduction", old, new, why, group, diagnosis)


_SHORT = {FW: "fw", BW: "bw", LN: "ln", LB: "lb"}
SHORT, LEN, LONG = "short rows", "lengths around a bucket border", "long rows"
HEADS, NONE, PADDING, FUTURE = "batches and heads", "no mask", "padding mask", "future mask"
OFFSET, MANY, STREAMS = "large offset", "many rows", "streams"
SMALL, WIDTH, LARGE = "small hidden sizes", "hidden sizes around a border", "large hidden sizes"
VARIANCE, CONSTANT, TILES = "small variance", "constant rows", "row counts around a tile border"
TINY, BIG = "tiny gradients", "large gradients"

_EXP = "value[c][w] = exp2f((value[c][w] - shift) * LOG2_E);"
_DIAGONAL = "visible = min(length, query + 1);"
_PRODUCT = "sum[0] += grad[c][w] * weight[c][w];"
_RESULT = "grad[c][w] = weight[c][w] * (grad[c][w] - sum[0]);"
_DX = "dx[w] = (piece.dy[c][w] * scale[w] - mean_g - piece.x[c][w] * mean_gx) * piece.inverse_sigma;"
_COLUMN = "sum[w] += dy[a][w] * ((x[a][w] - mean[a]) * inverse_sigma);"
_Y = "value[c][w] = value[c][w] * inverse_sigma * gamma[c][w] + beta[c][w];"
_STATISTICS = "    means[row] = mean;\n    vars[row] = variance;\n"
_FW_ROW = "const unsigned row = blockIdx.x * B::ROWS + threadIdx.x / B::GROUP;\n  const int lane = threadIdx.x % B::GROUP;\n  // A"
_BW_ROW = "const unsigned row = blockIdx.x * B::ROWS + threadIdx.x / B::GROUP;\n  const int lane = threadIdx.x % B::GROUP;\n  const"
_FW_MASK = "for (int w = 0; w < WIDTH; ++w) value[c][w] += added[w];"
_FW_CALL = "  launch(inp, attn_mask, rows, rows_per_mask, from_len, to_len, mask_future, stream);"
_BW_CALL = "  launch(out_grad, soft_inp, rows, softmax_len, stream);"
_LN_LAUNCH = "threads, 0, stream>>>(\n        ln_res"
_OTHER_STREAM = "[] { static cudaStream_t own = [] { cudaStream_t made; cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking); return made; }(); return own; }()"
_ROWS_IN_CONSTANT = (
    "constexpr float EPSILON = 1e-8f;",
    "constexpr float EPSILON = 1e-8f;\n__constant__ int kept;",
)
_SPLIT_LAUNCH = "BW_THREADS, 0, stream_1>>>(\n          gamma_grad"

_ACROSS_WARPS = """\
    for (int offset = WARPS / 2; offset > 0; offset /= 2) {
#pragma unroll
      for (int n = 0; n < N; ++n)
        value[n] = Op::combine(value[n], __shfl_xor_sync(0xffffffff, value[n], offset));
    }
"""
_WITHIN_WARP = """\
  for (int offset = IN_WARP / 2; offset > 0; offset /= 2) {
#pragma unroll
    for (int n = 0; n < N; ++n)
      value[n] = Op::combine(value[n], __shfl_xor_sync(0xffffffff, value[n], offset));
"""
_FROM_SHARED = "    for (int n = 0; n < N; ++n) value[n] = shared[n][first + lane % WARPS];\n#pragma unroll\n"
_TILE_IN = "  gammas[threadIdx.x][threadIdx.y] = a;\n  betas[threadIdx.x][threadIdx.y] = b;\n"
_TILE_OUT = "  const int out = blockIdx.x * 32 + threadIdx.y;\n  if (threadIdx.x == 0 && out < n) {"
_RESCALED = "sum = sum * __expf(largest - now) + "

_WARPS_OF_ROWS = """\
  for (int offset = 16; offset > 0; offset /= 2) {
    a += __shfl_down_sync(0xffffffff, a, offset);
    b += __shfl_down_sync(0xffffffff, b, offset);
  }
  if (threadIdx.x % 32 == 0) {
    sums[0][threadIdx.x / 32] = a;
    sums[1][threadIdx.x / 32] = b;
  }
  __syncthreads();
  a = b = 0.0f;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) {
    a += sums[0][warp] / n;
    b += sums[1][warp] / n;
  }
"""
_TREE_OF_ROWS = """\
  sums[0][threadIdx.x] = a;
  sums[1][threadIdx.x] = b;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      sums[0][threadIdx.x] += sums[0][threadIdx.x + half];
      sums[1][threadIdx.x] += sums[1][threadIdx.x + half];
    }
    __syncthreads();
  }
  a = sums[0][0] / n;
  b = sums[1][0] / n;
"""

_OF_ALL = (
    # every problem: reductions over threads, of rows that have more than a warp of them, or less
    *(
        _row(
            problem,
            "one-warp-for-all",
            _FROM_SHARED + _ACROSS_WARPS,
            "    for (int n = 0; n < N; ++n) value[n] = shared[n][first];\n",
            "what the first warp has is taken for what all of them have",
            group,
            "one warp's result is used for the whole block",
        )
        for problem, group in ((FW, LONG), (BW, LONG), (LN, WIDTH), (LB, WIDTH))
    ),
    *(
        _row(
            problem,
            "first-warp-knows",
            _FROM_SHARED + _ACROSS_WARPS,
            _FROM_SHARED.replace("value[n] =", "total[n] =").replace(
                "    for", "    float total[N];\n    for"
            )
            + _ACROSS_WARPS.replace("value[n]", "total[n]")
            + "    for (int n = 0; n < N; ++n) value[n] = warp == first ? total[n] : value[n];\n",
            "the other warps keep what they had before",
            group,
            "only the first warp gets the result",
        )
        for problem, group in ((FW, LONG), (BW, LONG), (LN, WIDTH), (LB, WIDTH))
    ),
    *(
        _row(
            problem,
            "warps-apart",
            "if constexpr (GROUP > 32) {",
            "if constexpr (GROUP > 4096) {",
            "the results of the warps are not combined",
            group,
            "each warp uses a result of its own",
        )
        for problem, group in ((FW, LONG), (BW, LONG), (LB, WIDTH))
    ),
    *(
        _row(
            problem,
            "shuffled-down",
            _WITHIN_WARP,
            _WITHIN_WARP.replace(
                "__shfl_xor_sync(0xffffffff, value[n], offset)",
                "__shfl_down_sync(0xffffffff, value[n], offset, IN_WARP)",
            ),
            "only the first lane has the result, and all lanes use theirs",
            group,
            "only the first lane of a warp gets the result",
        )
        for problem, group in ((FW, LEN), (BW, LEN), (LN, SMALL), (LB, SMALL))
    ),
)

_OF_VARIANTS = (
    # edits of variants: trees, tiles, online softmax, and what a compiler or a float makes of a number
    Mutant(
        "fw-odd-tree",
        FW,
        "softmax_forward/shared.cu",
        "reduction",
        "to_len <= 32 ? 32 : 256, 0",
        "min(256, (to_len + 31) / 32 * 32), 0",
        "the tree halves 96 or 160 threads",
        LEN,
        "halves a number of threads that is no power of two",
    ),
    Mutant(
        "fw-sum-set",
        FW,
        "softmax_forward/shared.cu",
        "reduction",
        "      value += held[j];",
        "      value = held[j];",
        "= where += belongs: of 257 keys and more, a thread has several",
        LONG,
        "only the last column of each thread counts",
    ),
    Mutant(
        "bw-sum-set",
        BW,
        "softmax_backward/exchange.cu",
        "reduction",
        "sum += __ldg(g + j) * y[j];",
        "sum = __ldg(g + j) * y[j];",
        "= where += belongs",
        LEN,
        "only the last column of each thread counts",
    ),
    Mutant(
        "bw-odd-tree",
        BW,
        "softmax_backward/dynamic.cu",
        "reduction",
        "for (int count = keys; count > 1; count = (count + 1) / 2) {",
        "for (int count = keys; count > 1; count = count / 2) {",
        "the tree drops the last one of an odd number",
        LEN,
        "halves a number of threads that is no power of two",
        (
            ("const int half = (count + 1) / 2;", "const int half = count / 2;"),
            ("j + half < count; j += blockDim.x) products", "j < half; j += blockDim.x) products"),
        ),
    ),
    Mutant(
        "ln-odd-tree",
        LN,
        "layernorm_forward/chan.cu",
        "reduction",
        "hidden_dim <= 16 ? 16 : 64, 0",
        "hidden_dim <= 16 ? 16 : 48, 0",
        "the tree halves 48 threads: 24, 12, 6, 3, 1",
        WIDTH,
        "halves a number of threads that is no power of two",
    ),
    Mutant(
        "lb-odd-tree",
        LB,
        "layernorm_backward/tiles.cu",
        "reduction",
        "hidden_dim <= 32 ? 32 : 128;",
        "hidden_dim <= 32 ? 32 : 96;",
        "the tree over three warps drops one",
        WIDTH,
        "halves a number of threads that is no power of two",
        (("__shared__ float sums[2][4];", "__shared__ float sums[2][128];"), (_WARPS_OF_ROWS, _TREE_OF_ROWS)),
    ),
    Mutant(
        "lb-tile-not-transposed",
        LB,
        "layernorm_backward/tiles.cu",
        "indexing",
        _TILE_IN,
        _TILE_IN.replace("[threadIdx.x][threadIdx.y]", "[threadIdx.y][threadIdx.x]"),
        "the warps add up across the columns of the tile",
        TILES,
        "run along the rows of a 32 x 32 tile",
    ),
    Mutant(
        "lb-gammas-not-transposed",
        LB,
        "layernorm_backward/tiles.cu",
        "indexing",
        "gammas[threadIdx.x][threadIdx.y] = a;",
        "gammas[threadIdx.y][threadIdx.x] = a;",
        "one of two tiles is transposed",
        TILES,
        "gamma_grad: the sums run along the rows of a 32 x 32 tile",
    ),
    Mutant(
        "lb-tile-transposed-twice",
        LB,
        "layernorm_backward/tiles.cu",
        "indexing",
        "  a = gammas[threadIdx.y][threadIdx.x];\n  b = betas[threadIdx.y][threadIdx.x];\n",
        "  a = gammas[threadIdx.x][threadIdx.y];\n  b = betas[threadIdx.x][threadIdx.y];\n",
        "every thread gets back what it gave",
        TILES,
        "run along the rows of a 32 x 32 tile",
    ),
    Mutant(
        "lb-tile-written-along-x",
        LB,
        "layernorm_backward/tiles.cu",
        "indexing",
        _TILE_OUT,
        _TILE_OUT.replace("threadIdx.y;", "threadIdx.z;")
        .replace("threadIdx.x == 0", "threadIdx.y == 0")
        .replace("threadIdx.z", "threadIdx.x"),
        "the lanes of one warp write, which have the sum of one column",
        TILES,
        "the first column of a 32 x 32 tile",
    ),
    Mutant(
        "fw-running-maximum",
        FW,
        "softmax_forward/online.cu",
        "arithmetic",
        _RESCALED + "__expf(logit - now);",
        "sum += __expf(logit - now);",
        "what was added up with a smaller maximum is not scaled down",
        LEN,
        "with the maximum so far",
    ),
    Mutant(
        "fw-local-maxima-in-the-sum",
        FW,
        "softmax_forward/online.cu",
        "arithmetic",
        _RESCALED + "other_sum * __expf(other - now);",
        "sum += other_sum;",
        "the sums of threads with different maxima are added up",
        LEN,
        "each thread's own maximum",
    ),
    Mutant(
        "fw-local-maximum-in-the-weights",
        FW,
        "softmax_forward/online.cu",
        "arithmetic",
        "  for (int offset = 16;",
        "  const float mine = largest;\n  for (int offset = 16;",
        "the weights are taken with the maximum of the thread, the sum with that of the row",
        LEN,
        "each thread's own maximum",
        (("__fdividef(__expf(logit - largest)", "__fdividef(__expf(logit - mine)"),),
    ),
    Mutant(
        "bw-thread-in-float",
        BW,
        "softmax_backward/exchange.cu",
        "overflow",
        "const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;",
        "const float thread = blockIdx.x * blockDim.x + threadIdx.x;\n  const int row = (int)thread / 32, lane = (int)thread % 32;",
        "a float has no odd numbers above 2^24",
        MANY,
        "kept in a float",
    ),
    Mutant(
        "bw-unset-local",
        BW,
        "softmax_backward/pairwise.cu",
        "statics",
        "  return stack[0];",
        "  return stack[0] + stack[15];",
        "a local array is read where nothing was written",
        SHORT,
        "a variable read that is never set",
    ),
)

_OF_THE_REFERENCE = (
    # softmax forward: arithmetic
    _fw(
        "no-maximum",
        "arithmetic",
        "const float shift = largest[0] == -INFINITY ? 0.0f : largest[0];",
        "const float shift = 0.0f;",
        "exp overflows above 88",
        OFFSET,
        "the maximum is not subtracted",
    ),
    _fw(
        "no-division",
        "arithmetic",
        "const float scale = 1.0f / (sum[0] + EPSILON);",
        "const float scale = 1.0f;",
        "weights do not add up to 1",
        SHORT,
        "division by the sum",
    ),
    _fw(
        "minimum",
        "arithmetic",
        "largest[0] = fmaxf(largest[0], value[c][w]);",
        "largest[0] = value[c][w];",
        "the last element is not the maximum: exp overflows",
        OFFSET,
        "the maximum is not subtracted",
    ),
    _fw(
        "maximum-from-zero",
        "arithmetic",
        "float largest[1] = {-INFINITY};",
        "float largest[1] = {0.0f};",
        "rows far below zero vanish",
        OFFSET,
        "the maximum starts at 0",
    ),
    _fw(
        "exp2",
        "arithmetic",
        _EXP,
        "value[c][w] = exp2f(value[c][w] - shift);",
        "base 2 instead of e",
        SHORT,
        "base 2",
    ),
    _fw(
        "logarithm",
        "arithmetic",
        "value[c][w] *= scale;",
        "value[c][w] = logf(value[c][w] * scale);",
        "the logarithm of the weights",
        SHORT,
        "logarithm of the softmax",
    ),
    _fw(
        "scaled-scores",
        "arithmetic",
        _FW_MASK,
        "for (int w = 0; w < WIDTH; ++w) value[c][w] = (value[c][w] + added[w]) * 0.125f;",
        "the scores are scaled, which is the caller's business",
        SHORT,
        "the caller's business",
    ),
    _fw(
        "squared-scale",
        "arithmetic",
        "value[c][w] *= scale;",
        "value[c][w] *= scale * scale;",
        "divided twice",
        SHORT,
        "by a factor of its own",
    ),
    # softmax forward: epsilon
    _fw(
        "eps-1e-3",
        "eps",
        "constexpr float EPSILON = 1e-8f;",
        "constexpr float EPSILON = 1e-3f;",
        "epsilon shows in the weights",
        SHORT,
        "epsilon is too large",
    ),
    _fw(
        "eps-1e-5",
        "eps",
        "constexpr float EPSILON = 1e-8f;",
        "constexpr float EPSILON = 1e-5f;",
        "epsilon shows where few keys carry the sum",
        SHORT,
        "epsilon is too large",
    ),
    _fw(
        "eps-per-weight",
        "eps",
        "value[c][w] *= scale;",
        "value[c][w] = value[c][w] * scale + 1e-6f;",
        "small weights drown",
        LONG,
        "by a constant of its own",
    ),
    # softmax forward: masks
    _fw(
        "mask-ignored",
        "masks",
        _FW_MASK,
        "for (int w = 0; w < WIDTH; ++w) value[c][w] += 0.0f * (added[w] > 0.0f);",
        "the mask is not added",
        PADDING,
        "the mask is not added",
    ),
    _fw(
        "mask-subtracted",
        "masks",
        _FW_MASK,
        "for (int w = 0; w < WIDTH; ++w) value[c][w] -= added[w];",
        "the sign of the mask",
        PADDING,
        "the mask is subtracted",
    ),
    _fw(
        "mask-of-batch-0",
        "masks",
        "attn_mask + static_cast<size_t>(rows_per_mask.quotient(row)) * to_len",
        "attn_mask + static_cast<size_t>(rows_per_mask.quotient(row)) * 0",
        "every batch gets the first mask",
        PADDING,
        "the mask of batch 0",
    ),
    _fw(
        "shared-mask-of-batch-0",
        "masks",
        "attn_mask + mask * to_len + key",
        "attn_mask + 0 * mask + key",
        "every block that shares a mask gets the first",
        PADDING,
        "the mask of batch 0",
    ),
    _fw(
        "mask-shared-across-batches",
        "masks",
        "rows_per_mask % Sharing::ROWS == 0",
        "rows_per_mask > 0",
        "a block whose rows are of two batches has one mask",
        PADDING,
        "the mask of batch 0",
    ),
    _fw(
        "shared-mask-unawaited",
        "masks",
        "      __syncthreads();\n    } else {",
        "    } else {",
        "a warp reads what another one has yet to write",
        MEMORY_GROUP,
    ),
    _fw(
        "quotient-rounded-down",
        "masks",
        "((1ull << shift) + value - 1) / value",
        "(1ull << shift) / value",
        "the first row of a batch gets the mask of the batch before",
        PADDING,
        "the mask of batch 0",
    ),
    _fw(
        "mask-of-head",
        "masks",
        "const int rows_per_mask = nhead * from_len;",
        "const int rows_per_mask = from_len;\n  batch_size *= nhead;",
        "the mask is taken for one per head: reads past its end",
        MEMORY_GROUP,
    ),
    _fw(
        "mask-shifted",
        "masks",
        "if (key < visible) load(added, mask + key);",
        "if (key < visible) load(added, mask + (key >= WIDTH ? key - WIDTH : 0));",
        "the mask of a neighbour",
        PADDING,
        "attn_mask is read",
    ),
    _fw(
        "mask-as-flag",
        "masks",
        _FW_MASK,
        "for (int w = 0; w < WIDTH; ++w) value[c][w] = added[w] != 0.0f ? -1e8f : value[c][w];",
        "the mask is taken for true or false",
        PADDING,
        "true or false",
    ),
    _fw(
        "future-ignored",
        "masks",
        _DIAGONAL,
        "visible = max(length, 0 * query);",
        "later keys are seen",
        FUTURE,
        "the future mask is not applied",
    ),
    _fw(
        "future-always",
        "masks",
        "if (mask_future) {  // else",
        "if (from_len > 0) {  // else",
        "the flag is not looked at",
        HEADS,
        "although mask_future is false",
    ),
    _fw(
        "future-hides-itself",
        "masks",
        _DIAGONAL,
        "visible = min(length, query);",
        "j >= i hidden",
        FUTURE,
        "shifted by one",
    ),
    _fw(
        "future-one-more",
        "masks",
        _DIAGONAL,
        "visible = min(length, query + 2);",
        "j = i + 1 is still seen",
        FUTURE,
        "shifted by one",
    ),
    _fw(
        "future-from-the-end",
        "masks",
        _DIAGONAL,
        "visible = max(0, min(length, query + 1 + to_len - from_len));",
        "the diagonal of a cache of keys, not by index",
        FUTURE,
        "counts from the last key",
    ),
    _fw(
        "future-of-row",
        "masks",
        "const int query = row % from_len;",
        "const int query = row;",
        "the row of the whole tensor is no query",
        FUTURE,
        "takes the row of the whole tensor",
    ),
    _fw(
        "future-sees-128",
        "masks",
        _DIAGONAL,
        "visible = min(min(length, 128), query + 1);",
        "the first 128 keys are seen at most, as if a row had one block of them",
        FUTURE,
    ),
    _fw(
        "future-half-a-row",
        "masks",
        "launch(Bucket<B::GROUP / 2, 2 * B::KEYS>{});",
        "launch(Bucket<B::GROUP / 2, B::KEYS>{});",
        "half of the threads, each with as many keys as before",
        FUTURE,
        "were never written",
    ),
    _fw(
        "diagonal-in-chunk",
        "masks",
        "if (key + w >= visible) value[c][w] = -INFINITY;",
        "if (key >= visible) value[c][w] = -INFINITY;",
        "the diagonal cuts a chunk of four",
        FUTURE,
        "groups of four keys",
    ),
    _fw(
        "hidden-not-written",
        "masks",
        "if (key < length) store_result<B>(x",
        "if (key < visible) store_result<B>(x",
        "hidden keys keep their scores",
        FUTURE,
        "were never written",
    ),
    # softmax forward: indexing, tails and buckets
    _fw(
        "row-stride",
        "indexing",
        "float* x = inp + static_cast<size_t>(row) * to_len;",
        "float* x = inp + static_cast<size_t>(row) * (to_len / 4 * 4);",
        "rows start too early",
        LEN,
    ),
    _fw(
        "half-of-the-rows",
        "indexing",
        "const int rows = batch_size * rows_per_mask;",
        "const int rows = (batch_size * rows_per_mask + 1) / 2;",
        "the second half is not touched",
        HEADS,
        "were never written",
    ),
    _fw(
        "first-batch-only",
        "indexing",
        "const int rows = batch_size * rows_per_mask;",
        "const int rows = rows_per_mask + 0 * batch_size;",
        "only batch 0 is done",
        HEADS,
        "right up to batch 0",
    ),
    _fw(
        "scores-of-long-rows",
        "indexing",
        "load_last_to_leave(value[c], x + key);",
        "load_last_to_leave(value[c], x + (key < 512 ? key : key - 512));",
        "above 512 keys the scores begin anew",
        LONG,
        "inp is read",
    ),
    _fw(
        "bucket-64",
        "buckets",
        "launch(Bucket<8, 8>{});",
        "launch(Bucket<8, 4>{});",
        "keys 32 to 63 have no thread",
        LEN,
        "were never written",
    ),
    _fw(
        "bucket-512",
        "buckets",
        "launch(Bucket<64, 8>{});",
        "launch(Bucket<32, 8>{});",
        "keys from 256 on have no thread",
        LEN,
        "were never written",
    ),
    _fw(
        "bucket-2048",
        "buckets",
        "launch(Bucket<256, 8>{});",
        "launch(Bucket<128, 8>{});",
        "keys from 1024 on have no thread",
        LONG,
        "were never written",
    ),
    _fw(
        "no-bucket-above-1024",
        "buckets",
        "else if (length <= 2048) launch(Bucket<256, 8>{});\n  else if (length <= 4096) launch(Bucket<512, 8>{});\n  else if (length <= 8192) launch(Bucket<1024, 8>{});\n",
        "",
        "nothing is launched above 1024",
        LONG,
        "nothing was written",
    ),
    _fw(
        "tail-of-four",
        "tails",
        "to_len % 4 == 0 && aligned(inp)",
        "to_len % 4 != 5 && aligned(inp)",
        "float4 on rows that are not aligned",
        MEMORY_GROUP,
    ),
    _fw(
        "last-row",
        "tails",
        "return (static_cast<unsigned>(rows) + rows_per_block - 1) / rows_per_block;",
        "return rows > rows_per_block ? rows / rows_per_block : 1;",
        "rows that the block does not divide",
        HEADS,
        "were never written",
    ),
    Mutant(
        "fw-blocks-along-y",
        FW,
        SOFTMAX,
        "overflow",
        "<<<blocks, B::THREADS, 0, stream>>>(inp, attn_mask, rows, per_mask, from_len, to_len, mask_future);\n    } else {",
        "<<<dim3(1, blocks), B::THREADS, 0, stream>>>(inp, attn_mask, rows, per_mask, from_len, to_len, mask_future);\n    } else {",
        "a grid has at most 65,535 blocks along y, here of 16 rows",
        MANY,
        "blocks",
        ((_FW_ROW, _FW_ROW.replace("blockIdx.x", "(blockIdx.x + blockIdx.y)")),),
    ),
    _fw(
        "row-in-20-bits",
        "overflow",
        _FW_ROW,
        _FW_ROW.replace(
            "blockIdx.x * B::ROWS + threadIdx.x / B::GROUP",
            "(blockIdx.x * B::ROWS + threadIdx.x / B::GROUP) & 0xfffff",
        ),
        "rows beyond 2^20 are taken for the first ones",
        MANY,
        "too few bits",
    ),
    _fw(
        "grid-16-bit",
        "overflow",
        "return (static_cast<unsigned>(rows) + rows_per_block - 1) / rows_per_block;",
        "return ((static_cast<unsigned>(rows) + rows_per_block - 1) / rows_per_block) & 0x0fff;",
        "the block count wraps",
        MANY,
        "were never written",
    ),
    # softmax forward: reduction and precision
    _fw(
        "sum-of-group",
        "reduction",
        "  reduce<Sum, B::GROUP>(sum, sums);\n  const float scale",
        "  reduce<Sum, B::GROUP / 2>(sum, sums);\n  const float scale",
        "half of a group is added up",
        SHORT,
        "reduction over threads",
    ),
    _fw(
        "no-sum-reduction",
        "reduction",
        "  reduce<Sum, B::GROUP>(sum, sums);\n  const float scale",
        "  const float scale",
        "every thread divides by its own sum",
        SHORT,
        "reduction over threads",
    ),
    _fw(
        "no-max-reduction",
        "reduction",
        "  reduce<Max, B::GROUP>(largest, maxima);\n",
        "",
        "every thread has its own maximum",
        SHORT,
        "reduction over threads",
    ),
    _fw(
        "shared-between-reductions",
        "synchronisation",
        "  reduce<Sum, B::GROUP>(sum, sums);\n  const float scale",
        "  reduce<Sum, B::GROUP>(sum, maxima);\n  const float scale",
        "a fast warp overwrites a maximum that a slow one has yet to read",
        MEMORY_GROUP,
    ),
    _fw(
        "half-exponent",
        "precision",
        _EXP,
        "value[c][w] = exp2f(__half2float(__float2half(value[c][w] - shift)) * LOG2_E);",
        "the exponent is rounded to half precision",
        SHORT,
        "float16",
    ),
    _fw(
        "half-weights",
        "precision",
        "value[c][w] *= scale;",
        "value[c][w] = __half2float(__float2half(value[c][w] * scale));",
        "the weights are rounded to half precision",
        SHORT,
        "float16",
    ),
    _fw(
        "bf16-scores",
        "precision",
        _FW_MASK,
        "for (int w = 0; w < WIDTH; ++w) value[c][w] = __bfloat162float(__float2bfloat16(value[c][w] + added[w]));",
        "the scores are rounded to bfloat16",
        SHORT,
        "bfloat16",
    ),
    # softmax forward: statics, streams, overruns
    _fw(
        "called-once",
        "statics",
        _FW_CALL,
        "  static int calls = 0;\n  if (calls++ == 0)\n  " + _FW_CALL,
        "works on the first call only",
        SHORT,
        "kept between calls",
    ),
    _fw(
        "default-stream",
        "streams",
        _FW_CALL,
        _FW_CALL.replace(", stream);", ", nullptr);"),
        "work on the default stream",
        STREAMS,
        "another stream",
    ),
    _fw(
        "long-default-stream",
        "streams",
        _FW_CALL,
        _FW_CALL.replace(", stream);", ", to_len > 1024 ? nullptr : stream);"),
        "one of several launches forgets the stream",
        STREAMS,
        "another stream",
    ),
    _fw(
        "long-no-maximum",
        "arithmetic",
        "const float shift = largest[0] == -INFINITY ? 0.0f : largest[0];",
        "const float shift = largest[0] == -INFINITY || to_len > 1024 ? 0.0f : largest[0];",
        "the kernel for long rows subtracts no maximum",
        OFFSET,
        "the maximum is not subtracted",
    ),
    _fw(
        "future-not-512",
        "masks",
        "  if (mask_future) {  // else no load",
        "  if (mask_future && (to_len <= 256 || to_len > 1024)) {  // else no load",
        "some lengths have a launch of their own, without mask_future",
        FUTURE,
        "the future mask is not applied",
    ),
    _fw(
        "short-future-needs-mask",
        "masks",
        "  if (mask_future) {  // else no load",
        "  if (mask_future && (to_len > 32 || attn_mask != nullptr)) {  // else no load",
        "short rows look at mask_future only where there is a mask",
        FUTURE,
        "the future mask is not applied",
    ),
    _fw(
        "writes-past-the-end",
        "overruns",
        "if (key < length) store_result<B>(x",
        "if (key < length + (length > 0 ? WIDTH : 0)) store_result<B>(x",
        "one element past each row",
        MEMORY_GROUP,
    ),
    # softmax backward
    _bw(
        "no-sum",
        "arithmetic",
        _RESULT,
        "grad[c][w] = weight[c][w] * grad[c][w];",
        "the sum is dropped",
        SHORT,
        "the sum of grad * soft is not subtracted",
    ),
    _bw(
        "sum-added",
        "arithmetic",
        _RESULT,
        "grad[c][w] = weight[c][w] * (grad[c][w] + sum[0]);",
        "sign",
        SHORT,
        "is added instead of subtracted",
    ),
    _bw(
        "no-factor",
        "arithmetic",
        _RESULT,
        "grad[c][w] = grad[c][w] - sum[0];",
        "factor soft is missing",
        SHORT,
        "the factor soft in front is missing",
    ),
    _bw(
        "bracket",
        "arithmetic",
        _RESULT,
        "grad[c][w] = weight[c][w] * grad[c][w] - sum[0];",
        "bracket",
        SHORT,
        "soft is multiplied with grad only",
    ),
    _bw(
        "sum-of-grad",
        "arithmetic",
        _PRODUCT,
        "sum[0] += grad[c][w];",
        "the wrong sum",
        SHORT,
        "the sum of grad is subtracted",
    ),
    _bw(
        "sum-of-squares",
        "arithmetic",
        _PRODUCT,
        "sum[0] += weight[c][w] * weight[c][w];",
        "the wrong sum",
        SHORT,
        "soft squared",
    ),
    _bw(
        "sign",
        "arithmetic",
        _RESULT,
        "grad[c][w] = weight[c][w] * (sum[0] - grad[c][w]);",
        "sign",
        SHORT,
        "the sign is wrong",
    ),
    _bw(
        "mean",
        "arithmetic",
        _RESULT,
        "grad[c][w] = weight[c][w] * (grad[c][w] - sum[0] / softmax_len);",
        "the mean instead of the sum",
        SHORT,
        "the mean of grad * soft",
    ),
    _bw(
        "swapped",
        "arithmetic",
        _RESULT,
        "grad[c][w] = grad[c][w] * (weight[c][w] - sum[0]);",
        "roles",
        SHORT,
        "grad and soft are swapped",
    ),
    _bw("zeros", "arithmetic", _RESULT, "grad[c][w] = 0.0f;", "all zero", SHORT, "zero"),
    _bw(
        "last-element",
        "tails",
        "const int length = row < static_cast<unsigned>(rows) ? softmax_len : 0;",
        "const int length = row < static_cast<unsigned>(rows) ? softmax_len - (softmax_len > 4) : 0;",
        "the last element is left out",
        LEN,
        "were never written",
    ),
    _bw(
        "last-row",
        "indexing",
        "const int length = row < static_cast<unsigned>(rows) ? softmax_len : 0;",
        "const int length = row + 1 < static_cast<unsigned>(rows) ? softmax_len : 0;",
        "the last row is left out",
        SHORT,
        "the last one",
    ),
    _bw(
        "soft-of-first-row",
        "indexing",
        "const float* soft = soft_inp + static_cast<size_t>(row) * softmax_len;",
        "const float* soft = soft_inp + static_cast<size_t>(row & ~1u) * softmax_len;",
        "pairs of rows share soft",
        SHORT,
        "soft_inp is read from the first of",
    ),
    _bw(
        "soft-of-long-rows",
        "indexing",
        "load_for_gradient<B>(weight[c], soft + key);",
        "load_for_gradient<B>(weight[c], soft + (B::LONG && key >= 512 ? key - 512 : key));",
        "above 512 keys soft begins anew",
        LONG,
        "soft_inp is read",
    ),
    _bw(
        "soft-of-short-rows",
        "indexing",
        "load_for_gradient<B>(weight[c], soft + key);",
        "load_for_gradient<B>(weight[c], soft + (B::SHORT && key >= 32 ? key - 32 : key));",
        "from 33 to 64 keys soft begins anew",
        LEN,
        "soft_inp is read",
    ),
    _bw(
        "row-bound",
        "overruns",
        "const int length = row < static_cast<unsigned>(rows) ? softmax_len : 0;",
        "const int length = row <= static_cast<unsigned>(rows) ? softmax_len : 0;",
        "one row too many",
        MEMORY_GROUP,
    ),
    _bw(
        "writes-soft",
        "in-place",
        "if (key < length) store_result<B>(out + key, grad[c]);",
        "if (key < length) {\n      store_result<B>(out + key, grad[c]);\n      store(const_cast<float*>(soft) + key, grad[c]);\n    }",
        "soft_inp must not change",
        SHORT,
        "soft_inp must not change",
    ),
    _bw(
        "written-to-soft",
        "in-place",
        "if (key < length) store_result<B>(out + key, grad[c]);",
        "if (key < length) store_result<B>(const_cast<float*>(soft) + key, grad[c]);",
        "the result is in the input",
        SHORT,
        "soft_inp must not change",
    ),
    _bw(
        "no-reduction",
        "reduction",
        "  reduce<Sum, B::GROUP>(sum, sums);\n#pragma",
        "#pragma",
        "every thread has its own sum",
        SHORT,
        "reduction over threads",
    ),
    _bw(
        "half-group",
        "reduction",
        "  reduce<Sum, B::GROUP>(sum, sums);\n#pragma",
        "  reduce<Sum, B::GROUP / 2>(sum, sums);\n#pragma",
        "half of the group",
        SHORT,
        "reduction over threads",
    ),
    _bw(
        "half-sum",
        "precision",
        _PRODUCT,
        "sum[0] = __half2float(__float2half(sum[0] + grad[c][w] * weight[c][w]));",
        "the sum is kept in half precision",
        SHORT,
        "float16",
    ),
    _bw(
        "bf16-result",
        "precision",
        _RESULT,
        "grad[c][w] = __bfloat162float(__float2bfloat16(weight[c][w] * (grad[c][w] - sum[0])));",
        "rounded to bfloat16",
        SHORT,
        "bfloat16",
    ),
    _bw(
        "flush-small",
        "precision",
        _RESULT,
        "grad[c][w] = fabsf(weight[c][w]) < 1e-6f ? 0.0f : weight[c][w] * (grad[c][w] - sum[0]);",
        "small weights are taken for zero",
        "weights that are zero",
        "zero",
    ),
    _bw(
        "static-rows",
        "statics",
        _BW_CALL,
        "  static const int first_rows = rows;\n  launch(out_grad, soft_inp, first_rows, softmax_len, stream);",
        "remembers the first call's rows",
        SHORT,
        "kept between calls",
    ),
    _bw(
        "default-stream",
        "streams",
        _BW_CALL,
        "  launch(out_grad, soft_inp, rows, softmax_len, nullptr);",
        "work on the default stream",
        STREAMS,
        "another stream",
    ),
    Mutant(
        "bw-rows-in-constant",
        BW,
        SOFTMAX,
        "streams",
        _BW_CALL,
        "  cudaMemcpyToSymbol(kept, &rows, sizeof(int));\n" + _BW_CALL,
        "a constant that the next call overwrites while this one's kernel waits for its stream",
        STREAMS,
        "__constant__",
        (
            _ROWS_IN_CONSTANT,
            (
                "static_cast<unsigned>(rows) ? softmax_len : 0;\n  float* out = out_grad",
                "static_cast<unsigned>(kept) ? softmax_len : 0;\n  float* out = out_grad",
            ),
        ),
    ),
    _bw(
        "not-512",
        "indexing",
        _BW_CALL,
        "  if (softmax_len != 512)\n  " + _BW_CALL,
        "a length between two ranges of the dispatch, which leave it out",
        STREAMS,
        "nothing was written",
    ),
    _bw(
        "grid-of-65535",
        "indexing",
        _BW_CALL,
        "  launch(out_grad, soft_inp, rows < 262140 ? rows : 262140, softmax_len, stream);",
        "four rows per block, and no more blocks than a grid has along y",
        MANY,
        "were never written",
    ),
    _bw(
        "block-in-16-bits",
        "overflow",
        _BW_ROW,
        _BW_ROW.replace("blockIdx.x", "(blockIdx.x & 0xffff)"),
        "blocks beyond 65,536, of 16 rows each, are taken for the first ones",
        MANY,
        "too few bits",
    ),
    _bw(
        "twice",
        "in-place",
        _BW_CALL,
        _BW_CALL + "\n" + _BW_CALL,
        "in place: the second run eats its own output",
        SHORT,
        "applied twice",
    ),
    # LayerNorm forward
    _ln(
        "mean-not-subtracted",
        "arithmetic",
        "value[c][w] -= mean;",
        "",
        "the mean stays",
        SMALL,
        "the mean is not subtracted",
    ),
    _ln(
        "unbiased",
        "variance",
        "const float variance = square[0] * share;",
        "const float variance = square[0] / (hidden - 1);",
        "n - 1",
        SMALL,
        "unbiased",
    ),
    _ln(
        "no-root",
        "arithmetic",
        "const float inverse_sigma = rsqrtf(variance + EPSILON);\n\n  if",
        "const float inverse_sigma = 1.0f / (variance + EPSILON);\n\n  if",
        "divided by the variance",
        SMALL,
        "divided by the variance",
    ),
    _ln(
        "multiplied",
        "arithmetic",
        "const float inverse_sigma = rsqrtf(variance + EPSILON);\n\n  if",
        "const float inverse_sigma = sqrtf(variance + EPSILON);\n\n  if",
        "the root, not its inverse",
        SMALL,
        "multiplied with the standard deviation",
    ),
    _ln(
        "no-bias",
        "arithmetic",
        _Y,
        "value[c][w] = value[c][w] * inverse_sigma * gamma[c][w];",
        "bias",
        SMALL,
        "bias is not added",
    ),
    _ln(
        "no-scale",
        "arithmetic",
        _Y,
        "value[c][w] = value[c][w] * inverse_sigma + beta[c][w];",
        "scale",
        SMALL,
        "scale is not applied",
    ),
    _ln(
        "swapped",
        "arithmetic",
        _Y,
        "value[c][w] = value[c][w] * inverse_sigma * beta[c][w] + gamma[c][w];",
        "roles",
        SMALL,
        "scale and bias are swapped",
    ),
    _ln(
        "eps-1e-3",
        "eps",
        "constexpr float EPSILON = 1e-8f;",
        "constexpr float EPSILON = 1e-3f;",
        "epsilon",
        VARIANCE,
        "epsilon is too large",
    ),
    _ln(
        "eps-1e-5",
        "eps",
        "constexpr float EPSILON = 1e-8f;",
        "constexpr float EPSILON = 1e-5f;",
        "PyTorch's epsilon",
        VARIANCE,
        "epsilon is too large",
    ),
    _ln(
        "eps-0",
        "eps",
        "const float inverse_sigma = rsqrtf(variance + EPSILON);\n\n  if",
        "const float inverse_sigma = rsqrtf(variance);\n\n  if",
        "constant rows divide by zero",
        CONSTANT,
        "epsilon under the root is missing",
    ),
    _ln(
        "eps-outside",
        "eps",
        "const float inverse_sigma = rsqrtf(variance + EPSILON);\n\n  if",
        "const float inverse_sigma = 1.0f / (sqrtf(variance) + EPSILON);\n\n  if",
        "epsilon outside the root",
        VARIANCE,
        "added to the standard deviation",
    ),
    _ln(
        "eps-twice",
        "eps",
        "const float inverse_sigma = rsqrtf(variance + EPSILON);\n\n  if",
        "const float inverse_sigma = rsqrtf(variance + EPSILON + EPSILON);\n\n  if",
        "epsilon counts twice",
        VARIANCE,
        "epsilon is added twice",
    ),
    _ln(
        "eps-in-and-outside",
        "eps",
        "const float inverse_sigma = rsqrtf(variance + EPSILON);\n\n  if",
        "const float inverse_sigma = 1.0f / (sqrtf(variance + EPSILON) + EPSILON);\n\n  if",
        "under the root and again beside it",
        VARIANCE,
        "epsilon is added twice",
    ),
    _ln(
        "first-of-four",
        "reduction",
        "sum[0] += (value[c][0] + value[c][1]) + (value[c][2] + value[c][3]);",
        "sum[0] += value[c][0];",
        "three of the four numbers of a load are not added",
        SMALL,
        "only the first of the four numbers of each float4 counts",
    ),
    _ln(
        "vars-sigma",
        "variance",
        _STATISTICS,
        "    means[row] = mean;\n    vars[row] = sqrtf(variance);\n",
        "vars is the variance",
        SMALL,
        "vars holds the standard deviation",
    ),
    _ln(
        "vars-inverse",
        "variance",
        _STATISTICS,
        "    means[row] = mean;\n    vars[row] = inverse_sigma;\n",
        "vars is the variance",
        SMALL,
        "reciprocal of the standard deviation",
    ),
    _ln(
        "no-vars",
        "variance",
        _STATISTICS,
        "    means[row] = mean;\n",
        "vars is never written",
        SMALL,
        "vars: nothing was written",
    ),
    _ln(
        "no-means",
        "variance",
        _STATISTICS,
        "    vars[row] = variance;\n",
        "means is never written",
        SMALL,
        "means: nothing was written",
    ),
    _ln(
        "swapped-statistics",
        "variance",
        _STATISTICS,
        "    means[row] = variance;\n    vars[row] = mean;\n",
        "roles",
        SMALL,
        "vars holds the means",
    ),
    _ln(
        "negative-variance",
        "variance",
        "const float variance = square[0] * share;",
        "const float variance = (square[0] * share + mean * mean) - mean * mean * 1.0000002f;",
        "cancellation that goes below zero",
        CONSTANT,
        "negative variance",
    ),
    _ln(
        "tail-squares",
        "tails",
        "    const int column = (c * GROUP + lane) * 4;\n    if (column < columns) {\n#pragma unroll\n      for (int w = 0; w < 4; ++w) {\n        value[c][w] -= mean;",
        "    {\n#pragma unroll\n      for (int w = 0; w < 4; ++w) {\n        value[c][w] -= mean;",
        "columns past the end count as mean squared",
        WIDTH,
        "columns past the end",
    ),
    _ln(
        "bucket-256",
        "buckets",
        "launch(Bucket<32, 2>{});",
        "launch(Bucket<32, 1>{});",
        "columns from 128 on",
        WIDTH,
        "were never written",
    ),
    _ln(
        "bucket-8192",
        "buckets",
        "  else if (hidden_dim <= 8192) launch(Bucket<512, 4>{});\n}\n\n// A call's",
        "}\n\n// A call's",
        "nothing above 4096",
        LARGE,
        "nothing was written",
    ),
    _ln(
        "shared-between-reductions",
        "synchronisation",
        "reduce<Sum, GROUP>(square, squares);",
        "reduce<Sum, GROUP>(square, sums);",
        "the mean's partial sums are overwritten while they are read",
        MEMORY_GROUP,
    ),
    _ln(
        "half-input",
        "precision",
        "value[c][w] -= mean;",
        "value[c][w] = __half2float(__float2half(value[c][w] - mean));",
        "half precision inside",
        SMALL,
        "float16",
    ),
    _ln(
        "bf16-result",
        "precision",
        _Y,
        "value[c][w] = __bfloat162float(__float2bfloat16(value[c][w] * inverse_sigma * gamma[c][w] + beta[c][w]));",
        "rounded to bfloat16",
        SMALL,
        "bfloat16",
    ),
    _ln(
        "no-sum-reduction",
        "reduction",
        "  reduce<Sum, GROUP>(sum, sums);\n  const float mean",
        "  const float mean",
        "every thread has its own mean",
        SMALL,
        "a reduction over threads is missing",
    ),
    _ln(
        "default-stream",
        "streams",
        _LN_LAUNCH,
        _LN_LAUNCH.replace("stream>>>", "nullptr>>>"),
        "default stream",
        STREAMS,
        "another stream",
    ),
    _ln(
        "wide-default-stream",
        "streams",
        _LN_LAUNCH,
        _LN_LAUNCH.replace("stream>>>", "hidden_dim > 1024 ? nullptr : stream>>>"),
        "one of several launches forgets the stream",
        STREAMS,
        "another stream",
    ),
    Mutant(
        "ln-rows-in-constant",
        LN,
        LAYERNORM,
        "streams",
        "  const auto launch = [=](auto bucket) {\n    using B = decltype(bucket);\n    constexpr int threads",
        "  cudaMemcpyToSymbol(kept, &batch_size, sizeof(int));\n"
        "  const auto launch = [=](auto bucket) {\n    using B = decltype(bucket);\n    constexpr int threads",
        "a constant that the next call overwrites while this one's kernel waits for its stream",
        STREAMS,
        "__constant__",
        (
            _ROWS_IN_CONSTANT,
            (
                "const int columns = row < static_cast<unsigned>(rows) ? hidden : 0;",
                "const int columns = row < static_cast<unsigned>(kept) ? hidden : 0;",
            ),
        ),
    ),
    _ln(
        "row-bound",
        "overruns",
        "const int columns = row < static_cast<unsigned>(rows) ? hidden : 0;",
        "const int columns = row <= static_cast<unsigned>(rows) ? hidden : 0;",
        "one row too many",
        MEMORY_GROUP,
    ),
    _ln(
        "pairs-past-the-end",
        "overruns",
        "min(first + r, rows - 1)",
        "(first + r)",
        "of an odd number of narrow rows the last one's pair is read",
        MEMORY_GROUP,
    ),
    _ln(
        "pairs-statistics-past-the-end",
        "overruns",
        "lane == r && first + r < rows",
        "lane == r",
        "and its statistics are stored",
        MEMORY_GROUP,
    ),
    _ln(
        "row-in-20-bits",
        "overflow",
        "const unsigned row = blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP;",
        "const unsigned row = (blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP) & 0xfffff;",
        "rows beyond 2^20 are taken for the first ones",
        MANY,
        "were never written",
    ),
    _ln(
        "pairs-share",
        "arithmetic",
        "mean[r] *= 1.0f / PAIR_COLUMNS",
        "mean[r] *= 1.0f / 255",
        "of many narrow rows the mean is over 255 columns",
        MANY,
        "same factor",
    ),
    _ln(
        "wide-rows",
        "indexing",
        "load_last_to_leave(value[c], x + column);",
        "load_last_to_leave(value[c], x + (column < 2048 ? column : column - 2048));",
        "above 2048 columns the row begins anew",
        LARGE,
        "inp is read",
    ),
    # LayerNorm backward
    _lb(
        "no-mean-g",
        "arithmetic",
        _DX,
        _DX.replace(" - mean_g", "", 1),
        "a sum is dropped",
        SMALL,
        "the sum of dxhat is missing",
    ),
    _lb(
        "no-mean-gx",
        "arithmetic",
        _DX,
        _DX.replace(" - piece.x[c][w] * mean_gx", ""),
        "a sum is dropped",
        SMALL,
        "the sum of dxhat * xhat is missing",
    ),
    _lb(
        "both-sums",
        "arithmetic",
        _DX,
        "dx[w] = piece.dy[c][w] * scale[w] * piece.inverse_sigma;",
        "both dropped",
        SMALL,
        "both sums are missing",
    ),
    _lb(
        "sums-not-means",
        "arithmetic",
        "const float mean_g = sum[0] / columns, mean_gx = sum[1] / columns;",
        "const float mean_g = sum[0], mean_gx = sum[1];",
        "not divided by H",
        SMALL,
        "not divided by hidden_dim",
    ),
    _lb(
        "xhat-missing",
        "arithmetic",
        _DX,
        _DX.replace("piece.x[c][w] * mean_gx", "mean_gx"),
        "factor",
        SMALL,
        "xhat is missing",
    ),
    _lb(
        "no-sigma",
        "arithmetic",
        _DX,
        _DX.replace(" * piece.inverse_sigma", ""),
        "factor",
        SMALL,
        "the division by the standard deviation is missing",
    ),
    _lb(
        "gamma-missing",
        "arithmetic",
        "const float g = piece.dy[c][w] * scale[w];",
        "const float g = piece.dy[c][w];",
        "sums without gamma",
        SMALL,
        "gamma is missing in the two sums",
    ),
    _lb(
        "mean-added",
        "arithmetic",
        _DX,
        _DX.replace("- mean_g ", "+ mean_g "),
        "sign",
        SMALL,
        "dxhat is added",
    ),
    _lb(
        "dgamma-no-mean",
        "arithmetic",
        _COLUMN,
        "sum[w] += dy[a][w] * (x[a][w] * inverse_sigma);",
        "mean",
        SMALL,
        "the mean is not subtracted",
    ),
    _lb(
        "dgamma-no-sigma",
        "arithmetic",
        _COLUMN,
        "sum[w] += dy[a][w] * (x[a][w] - mean[a]);",
        "sigma",
        SMALL,
        "xhat is not divided",
    ),
    _lb(
        "swapped",
        "arithmetic",
        "(threadIdx.x < SLAB ? gamma_grad : betta_grad)[out] = total;",
        "(threadIdx.x < SLAB ? betta_grad : gamma_grad)[out] = total;",
        "roles",
        SMALL,
        "are swapped",
    ),
    _lb(
        "mean-of-rows",
        "arithmetic",
        "(threadIdx.x < SLAB ? gamma_grad : betta_grad)[out] = total;",
        "(threadIdx.x < SLAB ? gamma_grad : betta_grad)[out] = total / rows;",
        "mean instead of sum",
        SMALL,
        "means over the rows",
    ),
    _lb(
        "added-to",
        "in-place",
        "(threadIdx.x < SLAB ? gamma_grad : betta_grad)[out] = total;",
        "(threadIdx.x < SLAB ? gamma_grad : betta_grad)[out] += total;",
        "added to what was there",
        SMALL,
        "+=",
    ),
    _lb(
        "eps-1e-3",
        "eps",
        "constexpr float EPSILON = 1e-8f;",
        "constexpr float EPSILON = 1e-3f;",
        "epsilon",
        VARIANCE,
        "epsilon is too large",
    ),
    _lb(
        "eps-1e-5",
        "eps",
        "constexpr float EPSILON = 1e-8f;",
        "constexpr float EPSILON = 1e-5f;",
        "epsilon",
        VARIANCE,
        "epsilon is too large",
    ),
    _lb(
        "capped-grid",
        "indexing",
        "const unsigned row_blocks = blocks_for(batch_size, groups);",
        "const unsigned row_blocks = blocks_for(batch_size, groups) < 256 ? blocks_for(batch_size, groups) : 256;",
        "rows beyond those of 256 blocks are lost, which are many where a block has many",
        MANY,
        "were never written",
    ),
    _lb(
        "first-256-rows",
        "reduction",
        "if (row < rows) {\n          const size_t at",
        "if (row < min(rows, STEP)) {\n          const size_t at",
        "rows from 256 on do not count",
        MANY,
        "over the first 256 of",
    ),
    _lb(
        "warps-forgotten",
        "reduction",
        "for (int warp = 0; warp < WARPS; ++warp) total += shared[warp][threadIdx.x];",
        "for (int warp = 0; warp < 1; ++warp) total += shared[warp][threadIdx.x];",
        "one warp of 16",
        SMALL,
        "over the first 16 of",
    ),
    _lb(
        "no-barrier-columns",
        "synchronisation",
        "  __syncthreads();\n  if (threadIdx.x < 2 * SLAB) {",
        "  if (threadIdx.x < 2 * SLAB) {",
        "sums are read before all warps wrote them",
        MEMORY_GROUP,
    ),
    _lb(
        "partial-reduction",
        "reduction",
        "for (int i = threadIdx.y; i < count; i += 32)",
        "for (int i = threadIdx.y; i < min(count, 16); i += 32)",
        "partial sums of blocks from 16 on",
        MANY,
        "over the first 128 of every 256 rows only",
    ),
    _lb(
        "row-in-20-bits",
        "overflow",
        "      for (int w = 0; w < 4; ++w) {\n        dgamma[c][w] += piece.dy[c][w] * piece.x[c][w];",
        "      for (int w = 0; w < 4 && row < 1 << 20; ++w) {\n        dgamma[c][w] += piece.dy[c][w] * piece.x[c][w];",
        "rows beyond 2^20 do not count",
        MANY,
        "the sum is over the first 1048576 of",
    ),
    _lb(
        "groups-forgotten",
        "reduction",
        "for (int g = 1; g < GROUPS; ++g) {",
        "for (int g = 1; g < GROUPS - 1; ++g) {",
        "the last group's rows do not count",
        MANY,
        "over the first 7 of every 8 rows only",
    ),
    _lb(
        "one-buffer",
        "synchronisation",
        "finish_row<GROUP>(piece, gamma, sums[turn], inp_grad, row, rows, columns);",
        "finish_row<GROUP>(piece, gamma, sums[0], inp_grad, row, rows, columns);",
        "the next row's sums overwrite what a slow warp reads (large inputs)",
        MEMORY_GROUP,
    ),
    _lb(
        "missing-event",
        "streams",
        "dim3(32, 32), 0, stream_1>>>",
        f"dim3(32, 32), 0, {_OTHER_STREAM}>>>",
        "partial sums are added up before they are there",
        MANY,
        "depends on the order of execution",
    ),
    _lb(
        "default-stream",
        "streams",
        _SPLIT_LAUNCH,
        _SPLIT_LAUNCH.replace("stream_1", "nullptr"),
        "default stream",
        STREAMS,
        "another stream",
    ),
    _lb(
        "half-products",
        "precision",
        _COLUMN,
        "sum[w] = __half2float(__float2half(sum[w] + dy[a][w] * ((x[a][w] - mean[a]) * inverse_sigma)));",
        "sums in half precision",
        MANY,
        "float16",
    ),
    _lb(
        "bf16-dx",
        "precision",
        _DX,
        _DX.replace("dx[w] = ", "dx[w] = __bfloat162float(__float2bfloat16(").replace(";", "));"),
        "rounded to bfloat16",
        SMALL,
        "bfloat16",
    ),
    _lb(
        "column-bound",
        "tails",
        "    if (out < columns) (threadIdx.x < SLAB",
        "    if (out < columns - 4) (threadIdx.x < SLAB",
        "the last four columns are never written",
        SMALL,
        "were never written",
    ),
    _lb(
        "slab",
        "indexing",
        "const int column = blockIdx.x * SLAB + threadIdx.x % LANES * 4;",
        "const int column = (blockIdx.x & 15) * SLAB + threadIdx.x % LANES * 4;",
        "columns from 128 on repeat the first",
        WIDTH,
        "hold what belongs",
    ),
    _lb(
        "bucket-1024",
        "buckets",
        "launch(Bucket<256, 1>{});\n  else if (hidden_dim <= 2048) launch(Bucket<512, 1>{});",
        "launch(Bucket<128, 1>{});\n  else if (hidden_dim <= 2048) launch(Bucket<512, 1>{});",
        "columns from 512 on",
        WIDTH,
        "were never written",
    ),
    _lb(
        "bucket-8192",
        "buckets",
        "launch(Bucket<512, 1>{});\n  else if (hidden_dim <= 4096) launch(Bucket<512, 2>{});\n  else if (hidden_dim <= 8192) launch(Bucket<512, 4>{});",
        "launch(Bucket<512, 1>{});\n  else if (hidden_dim <= 4096) launch(Bucket<512, 2>{});\n  else if (hidden_dim <= 8192) launch(Bucket<512, 2>{});",
        "columns from 4096 on",
        LARGE,
        "were never written",
    ),
    # the header that all share; built with the problem named
    Mutant(
        "row-no-barrier",
        LN,
        ROW,
        "synchronisation",
        "    __syncthreads();\n",
        "",
        "warps read sums that are not there yet",
        MEMORY_GROUP,
    ),
    Mutant(
        "row-first-warp",
        LB,
        ROW,
        "reduction",
        "first = warp / WARPS * WARPS",
        "first = 0",
        "every group of a block gets the first one's sum",
        WIDTH,
        "rows get what the first of them",
    ),
    Mutant(
        "row-butterfly",
        FW,
        ROW,
        "reduction",
        "int offset = IN_WARP / 2; offset > 0",
        "int offset = IN_WARP / 2; offset > 1",
        "neighbours are never added",
        SHORT,
        "reduction over threads",
    ),
    Mutant(
        "row-max-of-magnitudes",
        FW,
        ROW,
        "arithmetic",
        "return fmaxf(a, b);",
        "return fmaxf(fabsf(a), fabsf(b));",
        "the maximum of magnitudes lets rows below zero vanish",
        OFFSET,
        "the maximum is of magnitudes",
    ),
)

MUTANTS = (*_OF_THE_REFERENCE, *_OF_ALL, *_OF_VARIANTS)
