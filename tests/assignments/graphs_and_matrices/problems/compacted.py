"""The numbers of x that a mask keeps, in order: the mask says how many there are."""

from grader.problems.checking import Wrong
from grader.problems.contents import integers, truths
from grader.problems.formula import Range, problem


def check(case, inputs, outputs):
    return Wrong(
        "a number is not the next one kept",
        "y",
        outputs["y"] != inputs.arrays["x"][inputs.arrays["mask"] > 0],
    )


PROBLEM = problem(
    id="compacted",
    file="compacted.cu",
    launcher="launch_compacted(long long* y, const long long* x, const bool* mask, int n, "
    "cudaStream_t stream)",
    check=check,
    inputs=lambda n: {"x": integers(-(1 << 60), 1 << 60, n), "mask": truths(n)},
    outputs=lambda mask: {"y": (int(mask.sum()),)},
    sizes={"n": Range(1, 4096)},
)
