"""Wrong programs: each is the reference with one edit."""

from __future__ import annotations

from functools import partial

from grader.assignments.mutants import Mutant
from grader.problems.problem import MEMORY_GROUP

sgemm = partial(Mutant, problem="sgemm", file="sgemm.cu")

MUTANTS = (
    sgemm(
        id="sgemm-no-barrier-before",
        old="    __syncthreads();\n    for (int depth",
        new="    for (int depth",
        why="threads multiply before the tiles are there",
        group=MEMORY_GROUP,
        theme="barriers",
    ),
    sgemm(
        id="sgemm-no-barrier-behind",
        old="    __syncthreads();\n  }\n  for (int i = 0; i < EACH; ++i) {\n    int row",
        new="  }\n  for (int i = 0; i < EACH; ++i) {\n    int row",
        why="tiles are replaced while others still read them",
        group=MEMORY_GROUP,
        theme="barriers",
    ),
    sgemm(
        id="sgemm-rest-of-depth-is-lost",
        old="first < k; first += DEPTH",
        new="first + DEPTH <= k; first += DEPTH",
        why="the products behind the last whole tile are left out",
        group="small",
        theme="bounds",
    ),
    sgemm(
        id="sgemm-reads-beyond-rows",
        old="top + row < m && first + depth < k ?",
        new="first + depth < k ?",
        why="rows below A are read",
        group=MEMORY_GROUP,
        theme="bounds",
    ),
    sgemm(
        id="sgemm-writes-beyond-columns",
        old="if (row < m && column < n)",
        new="if (row < m)",
        why="elements behind a row are written into the next one",
        group="small",
        theme="bounds",
    ),
    sgemm(
        id="sgemm-square",
        old="c[size_t(row) * n + column]",
        new="c[size_t(row) * m + column]",
        why="the rows of C are taken to be as long as its columns",
        group="any shape",
        theme="shape",
    ),
    sgemm(
        id="sgemm-one-block",
        old="dim3 blocks((n + TILE - 1) / TILE, (m + TILE - 1) / TILE)",
        new="dim3 blocks(1, (m + TILE - 1) / TILE)",
        why="columns behind the first tile are missing",
        group="several tiles",
        theme="grid",
    ),
    sgemm(
        id="sgemm-adds-to-c",
        old="+ column] = sums[i][j]",
        new="+ column] += sums[i][j]",
        why="what was in C before is added",
        group=MEMORY_GROUP,
        theme="definition",
    ),
)
