"""Colours for the vertices of a graph, of which neighbours differ."""

import numpy as np

from grader.problems.checking import Wrong
from grader.problems.contents import together
from grader.problems.formula import Range, problem


def inputs(n, edges):
    def graph(random):
        ends = random.integers(n, size=edges)
        others = (ends + random.integers(1, n, size=edges)) % n  # no vertex is its own neighbour
        sources, targets = np.append(ends, others), np.append(others, ends)
        begin = np.append(0, np.bincount(sources, minlength=n).cumsum())
        return {"begin": begin, "targets": targets[np.argsort(sources)]}

    return together({"normal": graph}, begin=(n + 1,), targets=(2 * edges,))


def check(case, inputs, outputs):
    colour, degrees = outputs["colour"], np.diff(inputs.arrays["begin"])
    alike = np.repeat(colour, degrees) == colour[inputs.arrays["targets"]]
    vertices = np.repeat(np.arange(colour.size), degrees)
    wrong = (np.bincount(vertices, alike, colour.size) > 0) | (colour < 0) | (colour > degrees.max())
    return Wrong("a colour is that of a neighbour, or none of 0 to the largest degree", "colour", wrong)


PROBLEM = problem(
    id="colouring",
    file="colouring.cu",
    launcher="launch_colouring(int* colour, const int* begin, const int* targets, int n, int edges, "
    "cudaStream_t stream)",
    check=check,
    inputs=inputs,
    outputs=lambda n: {"colour": (n,)},
    sizes={"n": Range(2, 300), "edges": Range(1, 1000)},
)
