"""How many of n random points in a square lie in a quarter of a circle, by a generator of one's own."""

import math

from grader.problems.checking import Wrong, frequencies
from grader.problems.contents import Number
from grader.problems.formula import Range, problem


def check(case, inputs, outputs):
    hits, n = int(outputs["hits"][0]), case.sizes["n"]
    if hits > n:
        return Wrong("there are more hits than points", "hits")
    doubt = frequencies([hits, n - hits], [math.pi / 4, 1 - math.pi / 4], names=["a hit", "a miss"])
    return Wrong(doubt, "hits") if doubt else ""


PROBLEM = problem(
    id="hits",
    file="hits.cu",
    launcher="launch_hits(unsigned long long* hits, unsigned int seed, size_t n, cudaStream_t stream)",
    check=check,
    inputs=lambda: {"seed": Number(1, 0, 1 << 30)},
    outputs=lambda: {"hits": (1,)},
    sizes={"n": Range(1, 1 << 15)},
)
