"""Wrong kernels of stencil, spmv, convolution, attention and sort that ``mutate`` does not make.

Each is the reference with one small edit and one reason.
"""

from grader.assignments.mutants import Mutant
from grader.problems.problem import MEMORY_GROUP


def _mutant(problem: str, name: str, old: str, new: str, why: str, group: str) -> Mutant:
    file = f"{problem}.cu"
    return Mutant(id=f"{problem}-{name}", problem=problem, file=file, old=old, new=new, why=why, group=group)


MUTANTS = (
    _mutant(
        "stencil",
        "in-place",
        "auto& fresh = squares[(step + 1) % 2];",
        "auto& fresh = squares[step % 2];",
        "a step reads what the same step has written",
        MEMORY_GROUP,
    ),
    _mutant(
        "stencil",
        "narrow-halo",
        "if (x < steps || x >= EDGE - steps || column >= columns) return;",
        "if (x < 1 || x >= EDGE - 1 || column < 0 || column >= columns) return;",
        "columns are written that some of the steps have made wrong",
        "large sizes",
    ),
    _mutant(
        "stencil",
        "border-spreads",
        "y < EDGE - 1 && row > 0 && row < rows - 1",
        "y < EDGE - 1 && row >= 0 && row < rows",
        "the first and the last row do not stay as they are",
        "small sizes",
    ),
    _mutant(
        "spmv",
        "empty-rows",
        "if (row < rows && lane == 0) y[row] = sum;",
        "if (row < rows && lane == 0 && starts[row] < starts[row + 1]) y[row] = sum;",
        "rows without entries are not written",
        "one long segment",
    ),
    _mutant(
        "spmv",
        "equal-rows",
        "int k = starts[row] + lane;",
        "int k = static_cast<int>(1LL * starts[rows] * row / rows) + lane;",
        "rows are taken to be of one length",
        "small sizes",
    ),
    _mutant(
        "spmv",
        "first-group",
        "if (row < rows && lane == 0) y[row] = sum;",
        "if (row < rows && threadIdx.x % 32 == 0) y[row] = sum;",
        "only the first row of each warp is written",
        "sizes around a border",
    ),
    _mutant(
        "convolution",
        "mirrored",
        "filter[thread / TAPS][thread % TAPS] = weights[thread]",
        "filter[thread / TAPS][thread % TAPS] = weights[TAPS * TAPS - 1 - thread]",
        "the filter is mirrored",
        "small sizes",
    ),
    _mutant(
        "convolution",
        "transposed",
        "weight[i] = filter[i][j];",
        "weight[i] = filter[j][i];",
        "rows and columns of the filter are exchanged",
        "small sizes",
    ),
    _mutant(
        "convolution",
        "repeated-border",
        "inside ? image[static_cast<size_t>(row) * columns + column] : 0.0f;",
        "image[min(max(row, 0), rows - 1) * columns + min(max(column, 0), columns - 1)];",
        "outside of the image the border is repeated",
        "small sizes",
    ),
    _mutant(
        "attention",
        "future",
        "begin + x + j * ACROSS > first + top + i;",
        "begin + x + j * ACROSS >= n;",
        "keys behind the query are not hidden",
        "small sizes",
    ),
    _mutant(
        "attention",
        "not-scaled",
        "1.4426950408889634f / 8.0f;",
        "1.4426950408889634f;",
        "logits are not divided by sqrt(64)",
        "small sizes",
    ),
    _mutant(
        "attention",
        "no-maximum",
        "high = largest(high);",
        "high = 0.0f;",
        "powers overflow, as no maximum is subtracted",
        "large numbers",
    ),
    _mutant(
        "attention",
        "sum-not-rescaled",
        "sum[i] = sum[i] * scale + total(added);",
        "sum[i] = sum[i] + total(added);",
        "the sum of earlier tiles belongs to another maximum",
        "sizes around a border",
    ),
    _mutant(
        "sort",
        "unsigned",
        "return pass == PASSES - 1 ? digit ^ (DIGITS / 2) : digit;",
        "return digit;",
        "negative keys come last",
        "extreme integers",
    ),
    _mutant(
        "sort",
        "not-stable",
        "place[i] = counted + __popc(before);",
        "place[i] = counted + __popc(peers) - 1 - __popc(before);",
        "a pass turns the order of keys with the same digit around",
        "small sizes",
    ),
    _mutant(
        "sort",
        "last-tile-alone",
        "= SUMMED | (before + count);",
        "= SUMMED | count;",
        "of the tiles before, only the one next to it counts",
        "large sizes",
    ),
)
