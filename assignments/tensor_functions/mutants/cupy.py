"""Wrong answers: edits of ``reference_cupy``, with the reason of each. All of them must fail."""

from grader.assignments.mutants import Mutant
from grader.problems.problem import MEMORY_GROUP


def edit(problem: str, name: str, old: str, new: str, why: str, group: str) -> Mutant:
    """The reference of ``problem`` with ``new`` in place of ``old``."""
    return Mutant(
        id=f"{problem}-{name}-by-cupy",
        problem=problem,
        file=f"{problem}.py",
        old=old,
        new=new,
        why=why,
        group=group,
        language="cupy",
    )


MUTANTS = (
    edit("shifted_sum", "no-shift", "y[at] + shift", "y[at]", "the number is not added", "small sizes"),
    edit(
        "shifted_sum",
        "one-block-less",
        "((n + threads - 1) // threads,)",
        "(max(1, n // threads),)",
        "the rest behind the last full block stays unwritten",
        "sizes around a border",
    ),
    edit(
        "shifted_sum",
        "store-unguarded",
        "if (at < n) out",
        "out",
        "the last block reads and writes behind the end",
        MEMORY_GROUP,
    ),
    edit(
        "row_softmax",
        "largest-left",
        "largest = combined<threads>(largest, -INFINITY, Larger());",
        "",
        "each thread takes the largest of its own elements away",
        "small sizes",
    ),
    edit(
        "row_softmax",
        "one-warp-alone",
        "value = lane < threads / warp_size ? of_warps[lane] : neutral;",
        "value = of_warps[0];",
        "only the first warp counts in long rows",
        "sizes around a border",
    ),
    edit(
        "row_softmax",
        "no-barrier",
        "    if (lane == 0) of_warps[threadIdx.x / warp_size] = value;\n    __syncthreads();",
        "    if (lane == 0) of_warps[threadIdx.x / warp_size] = value;",
        "warps read the values of others before they are there",
        MEMORY_GROUP,
    ),
)
