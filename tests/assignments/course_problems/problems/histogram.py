"""How many numbers fall into each of some bins, which are counted as unsigned int."""

import torch

from grader.problems.contents import indices
from grader.problems.formula import Range, problem


def counted(x, count):
    return torch.zeros(count, dtype=torch.int64).index_add(0, x.long(), torch.ones(len(x), dtype=torch.int64))


PROBLEM = problem(
    id="histogram",
    file="histogram.cu",
    launcher="launch_histogram(unsigned int* bins, const unsigned char* x, int n, int count, cudaStream_t s)",
    formula=counted,
    inputs=lambda n, count: {"x": indices(count, n)},
    sizes={"n": Range(1, 1 << 22), "count": Range(1, 256)},
)
