"""Wrong kernels of the problems from vector addition to matrix multiplication that ``mutate`` does not make.

Each is the reference with one small edit and one reason.
"""

from grader.assignments.mutants import Mutant
from grader.problems.problem import MEMORY_GROUP


def _mutant(problem: str, name: str, old: str, new: str, why: str, group: str) -> Mutant:
    file = f"{problem}.cu"
    return Mutant(id=f"{problem}-{name}", problem=problem, file=file, old=old, new=new, why=why, group=group)


MUTANTS = (
    _mutant(
        "vector_add",
        "whole-packs",
        "} else if (const int i = 3 * packs + thread; i < n) {\n    z[i] = x[i] + y[i];\n  }",
        "}",
        "the elements after the last whole group of four are left out",
        "small sizes",
    ),
    _mutant(
        "vector_add",
        "short-grid",
        "(n / 4 + n % 4 + THREADS - 1) / THREADS",
        "n / 4 / THREADS + 1",
        "the last block lacks the threads of the rest",
        "sizes around a border",
    ),
    _mutant(
        "saxpy",
        "overwritten",
        "sum.x = fmaf(a, add.x, sum.x);",
        "sum.x = a * add.x;",
        "y is overwritten, not added to",
        "small sizes",
    ),
    _mutant(
        "reduce_sum",
        "one-warp",
        "sum = threadIdx.x < THREADS / 32 ? sums[threadIdx.x] : 0.0f;",
        "sum = threadIdx.x == 0 ? sums[threadIdx.x] : 0.0f;",
        "the sum of the first warp alone counts",
        "sizes around a border",
    ),
    _mutant(
        "reduce_sum",
        "half-sums",
        "four.w += more.w;",
        "four.w = __half2float(__float2half(four.w + more.w));",
        "a sum is rounded to half precision on its way",
        "sizes around a border",
    ),
    _mutant(
        "argmax",
        "any-of-equal",
        "|| (b.number == a.number && b.place < a.place)",
        "|| (b.number == a.number && b.place > a.place)",
        "of equal numbers the last one wins",
        "equal numbers",
    ),
    _mutant(
        "argmax",
        "begins-at-zero",
        "const Best none = {-INFINITY, n};\n  Best best = none;\n  for (int i = thread; i < packs",
        "const Best none = {0.0f, n};\n  Best best = none;\n  for (int i = thread; i < packs",
        "a vector of negative numbers has no maximum",
        "small sizes",
    ),
    _mutant(
        "scan",
        "exclusive-tiles",
        "publish(tiles + tile, before + whole, PREFIX)",
        "publish(tiles + tile, before, PREFIX)",
        "a tile publishes what is before it as its own prefix",
        "beyond a million",
    ),
    _mutant(
        "scan",
        "nearest-left-out",
        "<= nearest ? __uint_as_float",
        "< nearest ? __uint_as_float",
        "the prefix of the nearest tile that knows its own is left out",
        "beyond a million",
    ),
    _mutant(
        "scan",
        "sum-not-carried",
        "sum += __shfl_sync(0xffffffff, upto, 31);",
        "sum = __shfl_sync(0xffffffff, upto, 31);",
        "only the step before counts",
        "sizes around a border",
    ),
    _mutant(
        "histogram",
        "not-cleared",
        "cudaMemsetAsync(counts, 0, bins * sizeof(int), stream);\n  ",
        "",
        "counters begin with what was in memory",
        "small sizes",
    ),
    _mutant(
        "histogram",
        "lost-update",
        "atomicAdd(own + four.x, 1);",
        "++own[four.x];",
        "threads add to a counter at the same time",
        MEMORY_GROUP,
    ),
    _mutant(
        "transpose",
        "square",
        "out[(size_t)(left + k) * rows + row]",
        "out[(size_t)(left + k) * columns + row]",
        "the result has as many columns as the matrix",
        "small sizes",
    ),
    _mutant(
        "transpose",
        "grid-of-y",
        "blockIdx.x / across * TILE, left",
        "blockIdx.x / across % 65535 * TILE, left",
        "tiles beyond 65,535 down are not written",
        "beyond a million",
    ),
    _mutant(
        "matmul",
        "transposed",
        "b[(size_t)(begin + s) * n + left + r]",
        "b[(size_t)(left + r) * k + begin + s]",
        "B is read as if it were transposed",
        "small sizes",
    ),
    _mutant(
        "matmul",
        "no-zeros",
        "top + r < m && begin + s < k ? a[(size_t)(top + r) * k + begin + s] : 0.0f",
        "top + r < m ? a[(size_t)(top + r) * k + begin + s] : 0.0f",
        "the last step along k takes what follows the row",
        "small sizes",
    ),
    _mutant(
        "matmul_half",
        "half-sums",
        "wmma::mma_sync(sum[i][j], down[i], right[j], sum[i][j]);",
        "{\n          wmma::mma_sync(sum[i][j], down[i], right[j], sum[i][j]);\n"
        "          for (float& one : sum[i][j].x) one = __half2float(__float2half(one));\n        }",
        "sums are rounded to half precision in every step",
        "large sizes",
    ),
    _mutant(
        "matmul_half",
        "ragged-rows",
        "if (columns % 8 == 0) {",
        "if (columns % 4 == 0) {",
        "rows that do not begin at a multiple of 16 bytes are loaded as if they did",
        MEMORY_GROUP,
    ),
)
