"""A sparse matrix in jagged diagonals times a vector: all parts of the matrix are drawn together."""

import numpy as np
import torch

from grader.problems.contents import real, together
from grader.problems.formula import Range, problem


def inputs(rows, entries):
    def jagged(random):
        lengths = np.bincount(random.integers(rows, size=entries), None, rows)
        begin = np.cumsum([0, *(lengths > np.arange(entries)[:, None]).sum(1)])
        parts = {"order": np.argsort(-lengths), "begin": begin, "longest": lengths.max()}
        return {**parts, "columns": random.integers(rows, size=entries)}

    shapes = {"order": (rows,), "begin": (entries + 1,), "longest": (), "columns": (entries,)}
    return {**together({"normal": jagged}, **shapes), "values": real(entries), "x": real(rows)}


def product(values, x, order, begin, columns):
    places = torch.arange(len(values))
    rows = order[places - begin[torch.searchsorted(begin[1:].contiguous(), places, right=True)]]
    return torch.zeros(len(x), dtype=values.dtype).index_add(0, rows, values * x[columns])


PARTS = "const int* order, const int* begin, const int* columns, int longest, int rows, int entries"
LAUNCHER = f"launch_jds(float* y, const float* values, const float* x, {PARTS}, cudaStream_t stream)"
SIZES = {"rows": Range(1, 500), "entries": Range(1, 3000)}
PROBLEM = problem(id="jds", file="jds.cu", launcher=LAUNCHER, formula=product, inputs=inputs, sizes=SIZES)
