"""Wrong answers in CUDA C++: edits of the reference in each of its languages. All of them must fail."""

from grader.assignments.mutants import Mutant
from grader.problems.problem import MEMORY_GROUP

BLOCKS = {
    "load_inline": ("(n + threads - 1) / threads, threads", "(n > threads ? n / threads : 1), threads"),
    "cupy": ("((n + threads - 1) // threads,)", "(max(1, n // threads),)"),
    "nvrtc": ("grid=(n + threads - 1) // threads", "grid=max(1, n // threads)"),
}
"""How many blocks a launch asks for, and without the last one: all else is in C++."""


def mutants(language: str) -> tuple[Mutant, ...]:
    """The edits of ``reference_LANGUAGE``, with the reason of each."""

    def edit(problem: str, name: str, old: str, new: str, why: str, group: str) -> Mutant:
        return Mutant(
            id=f"{problem}-{name}-by-{language.replace('_', '-')}",
            problem=problem,
            file=f"{problem}.py",
            old=old,
            new=new,
            why=why,
            group=group,
            language=language,
        )

    return (
        edit("shifted_sum", "no-shift", "y[at] + shift", "y[at]", "the number is not added", "small sizes"),
        edit(
            "shifted_sum",
            "one-block-less",
            *BLOCKS[language],
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
