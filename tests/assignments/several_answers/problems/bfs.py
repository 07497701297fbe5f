"""The parent of each vertex in a tree of shortest paths from vertex 0; -1 where there is no path."""

import numpy as np

from grader.problems.checking import Wrong
from grader.problems.contents import indices, offsets
from grader.problems.formula import Range, problem


def check(case, inputs, outputs):
    begin, targets, parent = inputs.arrays["begin"], inputs.arrays["targets"], outputs["parent"]
    vertices = case.sizes["vertices"]
    sources = np.repeat(np.arange(vertices), np.diff(begin))
    level, reached = np.full(vertices, -1), np.array([0])
    for step in range(vertices):
        level[reached] = step
        reached = np.unique(targets[(level[sources] == step) & (level[targets] < 0)])
        if not reached.size:
            break
    valid = (parent >= 0) & (parent < vertices)
    edges = np.isin(np.where(valid, parent, 0) * vertices + np.arange(vertices), sources * vertices + targets)
    right = valid & edges & (level[np.where(valid, parent, 0)] == level - 1)
    right[level < 0] = parent[level < 0] == -1
    right[0] = parent[0] == 0
    return Wrong("the parent of a vertex is not one step nearer to vertex 0", "parent", ~right)


PROBLEM = problem(
    id="bfs",
    file="bfs.cu",
    launcher="launch_bfs(int* parent, const int* begin, const int* targets, int vertices, int edges, "
    "cudaStream_t stream)",
    check=check,
    inputs=lambda vertices, edges: {"begin": offsets(edges, vertices), "targets": indices(vertices, edges)},
    outputs=lambda vertices: {"parent": (vertices,)},
    sizes={"vertices": Range(1, 400), "edges": Range(1, 2000)},
)
