"""Wrong programs: each is the reference with one edit."""

from __future__ import annotations

from functools import partial

from grader.assignments.mutants import Mutant
from grader.problems.problem import MEMORY_GROUP

scan = partial(Mutant, problem="scan", file="exclusive.cuh")
compact = partial(Mutant, problem="compact", file="compact.cu")
radix_sort = partial(Mutant, problem="radix_sort", file="radix_sort.cu")

MUTANTS = (
    scan(
        id="scan-inclusive",
        old="sums[threadIdx.x] - own",
        new="sums[threadIdx.x]",
        why="each element is in its own sum",
        group="small",
        theme="definition",
    ),
    scan(
        id="scan-no-barrier",
        old="    __syncthreads();\n    sums[threadIdx.x] += before;",
        new="    sums[threadIdx.x] += before;",
        why="threads add to what others still read",
        group=MEMORY_GROUP,
        theme="barriers",
    ),
    scan(
        id="scan-of-one-block",
        old="if (blocks > 1) {",
        new="if (blocks > 1 && n < 0) {",
        why="blocks do not know what is before them",
        group="around a block",
        theme="several blocks",
    ),
    scan(
        id="scan-totals-not-scanned",
        old="    exclusive(totals, blocks);\n",
        new="",
        why="each block gets the total of its own part alone",
        group="around a block",
        theme="several blocks",
    ),
    compact(
        id="compact-counts-without-the-last",
        old="last + (in[n - 1] != 0)",
        new="last",
        why="the last element is lost where it counts",
        group="many blocks",
        theme="count",
    ),
    compact(
        id="compact-drops-negatives",
        old="places[i] = in[i] != 0;",
        new="places[i] = in[i] > 0;",
        why="elements below 0 take no place of their own",
        group="small",
        theme="definition",
    ),
    compact(
        id="compact-in-any-order",
        old="out[places[i]] = in[i];",
        new="out[places[n - 1] + (in[n - 1] != 0) - 1 - places[i]] = in[i];",
        why="the elements come out in the reverse of their order",
        group="small",
        theme="order",
    ),
    compact(
        id="compact-leaks-threads",
        old="  if (i < n) places[i] = in[i] != 0;",
        new="  places[i] = in[i] != 0;",
        why="threads behind the last element read and write beyond the arrays",
        group=MEMORY_GROUP,
        theme="bounds",
    ),
    radix_sort(
        id="sort-unsigned",
        old="places[i] = (in[i] >> bit & 1) == (bit == 31);",
        new="places[i] = (in[i] >> bit & 1) == 0;",
        why="numbers below 0 take the places of those above",
        group="small",
        theme="sign",
    ),
    radix_sort(
        id="sort-of-31-bits",
        old="bit < 32",
        new="bit < 31",
        why="the sign is not looked at",
        group="small",
        theme="sign",
    ),
    radix_sort(
        id="sort-forgets-the-lowest-bit",
        old="bit = 0",
        new="bit = 1",
        why="numbers that differ in the lowest bit alone keep their order",
        group="many blocks",
        theme="definition",
    ),
    radix_sort(
        id="sort-not-stable",
        old="total + i - places[i]",
        new="n - 1 - i + places[i]",
        why="elements with a 1 change their order in each pass",
        group="small",
        theme="order",
    ),
    radix_sort(
        id="sort-forgets-the-last",
        old="places[n - 1] + last_first",
        new="places[n - 1]",
        why="two elements go to one place where the last one comes first",
        group="small",
        theme="count",
    ),
)
