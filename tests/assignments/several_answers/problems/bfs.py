"""The parent of each vertex in a tree of shortest paths from vertex 0; -1 where there is no path."""

import numpy as np

from grader.problems.checking import Wrong
from grader.problems.contents import graph
from grader.problems.formula import Range, problem


def check(case, inputs, outputs):
    targets, parent, n = inputs.arrays["targets"], outputs["parent"], case.sizes["n"]
    sources, level = np.repeat(np.arange(n), np.diff(inputs.arrays["begin"])), -np.sign(np.arange(n))
    for step in range(n):
        level[targets[(level[sources] == step) & (level[targets] < 0)]] = step + 1
    inside = parent.clip(0, n - 1)  # a kernel may write any number
    edges = np.isin(inside * n + np.arange(n), sources * n + targets)
    nearer = (parent == inside) & edges & (level[inside] == level - 1)
    wrong = np.where(level > 0, ~nearer, parent != level)  # 0 of vertex 0
    return Wrong("the parent of a vertex is not one step nearer to vertex 0", "parent", wrong)


PROBLEM = problem(
    id="bfs",
    file="bfs.cu",
    launcher="launch_bfs(int* parent, const int* begin, const int* targets, int n, int m, cudaStream_t s)",
    check=check,
    inputs=lambda n, m: {**graph(n, m)},
    outputs=lambda n: {"parent": (n,)},
    sizes={"n": Range(1, 400), "m": Range(1, 2000)},
)
