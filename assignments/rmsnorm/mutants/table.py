"""Wrong kernels: each is the reference with one small edit and one reason. All of them must fail.

``group`` is a case group that must fail; ``diagnosis`` a piece of what the judge should say, empty where no
rule is expected to know.
"""

from grader.assignments.mutants import Mutant
from grader.problems.problem import MEMORY_GROUP

KERNEL, ROW = "rmsnorm_kernel.cu", "row.cuh"


def _forward(name: str, old: str, new: str, why: str, group: str, diagnosis: str = "") -> Mutant:
    return _mutant(f"fw-{name}", "rmsnorm_forward", old, new, why, group, diagnosis)


def _backward(name: str, old: str, new: str, why: str, group: str, diagnosis: str = "") -> Mutant:
    return _mutant(f"bw-{name}", "rmsnorm_backward", old, new, why, group, diagnosis)


def _mutant(name: str, problem: str, old: str, new: str, why: str, group: str, diagnosis: str) -> Mutant:
    file = ROW if old in _IN_ROW else KERNEL
    return Mutant(
        id=name, problem=problem, file=file, old=old, new=new, why=why, group=group, diagnosis=diagnosis
    )


_MEET = "    meet<GROUP, THREADS>();\n"
_IN_ROW = (_MEET,)

MUTANTS = (
    _forward(
        "sum-for-mean",
        "sum_over_group<GROUP, THREADS>(sum, sums) * share + epsilon",
        "sum_over_group<GROUP, THREADS>(sum, sums) + epsilon",
        "the sum of squares is not divided by the length",
        "hidden sizes around a border",
        "divided by the root of the sum",
    ),
    _forward(
        "epsilon-1e-5",
        "(sum, sums) * share + epsilon",
        "(sum, sums) * share + 1e-5f",
        "another epsilon than the one that is passed",
        "large and small numbers",
        "epsilon is 1e-5",
    ),
    _forward(
        "no-epsilon",
        "(sum, sums) * share + epsilon",
        "(sum, sums) * share",
        "a row of zeros is divided by zero",
        "large and small numbers",
    ),
    _forward(
        "rstd-inverted",
        "rstd[row] = inverse;",
        "rstd[row] = 1.0f / inverse;",
        "rstd holds the root, not its reciprocal",
        "hidden sizes around a border",
        "rstd holds the root mean square",
    ),
    _forward(
        "odd-rows-unweighted",
        "from_float<T>(normal * to_float(weight[column]))",
        "from_float<T>(normal)",
        "the weight is left out where rows are no whole packs",
        "small hidden sizes",
        "weight is not applied",
    ),
    _forward(
        "odd-rows-short",
        "column < hidden; column += ANY_THREADS) {\n    const float element",
        "column < hidden - 1; column += ANY_THREADS) {\n    const float element",
        "the last element of a row does not count in its sum",
        "small hidden sizes",
    ),
    _forward(
        "sum-in-half",
        "sum += element[w] * element[w];",
        "sum = rounded<T>(sum + element[w] * element[w]);",
        "the sum is kept in the type of x",
        "bfloat16",
    ),
    _forward(
        "square-in-half",
        "sum += element[w] * element[w];",
        "sum += rounded<T>(element[w] * element[w]);",
        "squares are rounded to the type of x, and overflow in float16",
        "float16",
    ),
    _forward(
        "default-stream",
        "threads, 0, stream>>>(\n        y, rstd",
        "threads, 0, nullptr>>>(\n        y, rstd",
        "the kernel runs on the default stream",
        "streams",
    ),
    _forward(
        "past-the-end",
        "const int columns = row < static_cast<unsigned>(rows) ? hidden : 0;\n  const size_t start",
        "const int columns = hidden;\n  const size_t start",
        "threads behind the last row read and write",
        MEMORY_GROUP,
    ),
    _forward(
        "row-in-16-bits",
        "const unsigned row = blockIdx.x * (THREADS / GROUP)",
        "const unsigned row = (blockIdx.x & 0xffff) * (THREADS / GROUP)",
        "a block's number is kept in 16 bits",
        "many rows",
    ),
    _forward(
        "missing-barrier",
        _MEET,
        "",
        "a warp reads the sums of others before they are there",
        MEMORY_GROUP,
    ),
    _forward(
        "packs-of-4",
        "if (hidden % Pack<T>::WIDTH != 0)\n    ker_rms_norm_any",
        "if (hidden % 4 != 0)\n    ker_rms_norm_any",
        "rows of 16-bit types begin where no pack of 16 bytes may",
        "float16",
    ),
    _backward(
        "sum-for-mean",
        "sum_over_group<GROUP, THREADS>(sum, shared) * share;",
        "sum_over_group<GROUP, THREADS>(sum, shared);",
        "the sum is not divided by the length",
        "hidden sizes around a border",
        "the sum of g n is not divided by hidden",
    ),
    _backward(
        "no-n",
        "- x[w] * piece.inverse * mean)",
        "- mean)",
        "the mean is subtracted as it is",
        "hidden sizes around a border",
        "n is missing in front of the mean",
    ),
    _backward(
        "no-weight-in-mean",
        "sum += dy[w] * factor[w] * (x[w] * piece.inverse);",
        "sum += dy[w] * (x[w] * piece.inverse);",
        "the mean is one of dy, not of g",
        "hidden sizes around a border",
        "weight is missing in the mean",
    ),
    _backward(
        "no-rstd-in-dweight",
        "gradient[w] * rounded<T>(normal[w] * piece.inverse)",
        "gradient[w] * normal[w]",
        "dweight is a sum over x instead of n",
        "many rows",
        "x is not multiplied by rstd",
    ),
    _backward(
        "dweight-in-half",
        "sum[w] += g[w] * rounded<T>(n[w] * inverse[a]);",
        "sum[w] = rounded<T>(sum[w] + g[w] * rounded<T>(n[w] * inverse[a]));",
        "dweight is added up in the type of x",
        "bfloat16",
    ),
    _backward(
        "last-partial-sum",
        "i < count; i += 32) sum += partials",
        "i < count - 1; i += 32) sum += partials",
        "the last partial sum is left out",
        "many rows",
    ),
    _backward(
        "missing-barrier",
        "      __syncthreads();\n      for (int i = threadIdx.x; i < WIDTH * GROUP; i += THREADS) {",
        "      for (int i = threadIdx.x; i < WIDTH * GROUP; i += THREADS) {",
        "sums of other groups are read before they are there",
        MEMORY_GROUP,
    ),
    _backward(
        "waits-for-one-row-less",
        '"cp.async.wait_group %0;" ::"n"(STAGES - 1)',
        '"cp.async.wait_group %0;" ::"n"(STAGES)',
        "a row is read while it is still on its way",
        MEMORY_GROUP,
    ),
    _backward(
        "asked-too-early",
        "(piece, weights, sums[turn], dx, row, rows, columns, share);\n    if constexpr (STAGES > 0) {\n"
        "      coming.ask(stage, dy, x, row + STAGES * stride, rows, columns);",
        "(piece, weights, sums[turn], dx, row, rows, columns, share);\n    if constexpr (STAGES > 0) {\n"
        "      coming.ask(stage, dy, x, row + stride, rows, columns);",
        "the row that is asked for is not the one that its stage is read for",
        "many rows",
    ),
    _backward(
        "rows-twice",
        "row < rows; row += gridDim.y * 32) {",
        "row < rows; row += 32) {",
        "blocks count each other's rows",
        "hidden sizes around a border",
    ),
)
