"""Wrong kernels in Triton: edits of ``reference_triton``, with the reason of each."""

from __future__ import annotations

from functools import partial

from grader.assignments.mutants import Mutant
from grader.problems.problem import MEMORY_GROUP

_mutant = partial(Mutant, file="rmsnorm_kernel.py", language="triton")
_forward, _backward = (partial(_mutant, problem=f"rmsnorm_{way}") for way in ("forward", "backward"))

MUTANTS = (
    _forward(
        id="triton-epsilon-missing",
        old=" / hidden + epsilon)",
        new=" / hidden)",
        why="rows of zeros are divided by zero",
        group="large and small numbers",
    ),
    _forward(
        id="triton-padded-mean",
        old="tl.rsqrt(tl.sum(value * value, axis=1) / hidden",
        new="tl.rsqrt(tl.sum(value * value, axis=1) / wide",
        why="the mean is over the tile, not over the row",
        group="small hidden sizes",
    ),
    _forward(
        id="triton-weight-missing",
        old="tl.store(y + at, normal * scale[None, :], mask=inside)",
        new="tl.store(y + at, normal, mask=inside)",
        why="the weight is not applied",
        group="small hidden sizes",
    ),
    _forward(
        id="triton-half-sum",
        old="    root = tl.rsqrt(tl.sum(value * value",
        new="    value = value.to(tl.float16).to(tl.float32)\n    root = tl.rsqrt(tl.sum(value * value",
        why="float32 rows are rounded to float16",
        group="large hidden sizes",
    ),
    _forward(
        id="triton-largest-weight",
        old="normal * scale[None, :]",
        new="normal * tl.max(scale, axis=0)",
        why="every column is scaled by the largest weight",
        group="large hidden sizes",
    ),
    _forward(
        id="triton-store-unmasked",
        old="tl.store(rstd + row, root, mask=row < rows)",
        new="tl.store(rstd + row, root)",
        why="the last program writes behind the end of rstd",
        group=MEMORY_GROUP,
    ),
    _backward(
        id="triton-mean-missing",
        old="root * (gradient - normal * mean[:, None])",
        new="root * gradient",
        why="the mean of g n is missing",
        group="small hidden sizes",
    ),
    _backward(
        id="triton-last-rows-only",
        old="        part += row_gradients(",
        new="        part = row_gradients(",
        why="each program keeps only the last of its tiles",
        group="many rows",
    ),
    _backward(
        id="triton-programs-short",
        old="inside = (part < programs)[:, None]",
        new="inside = (part < programs - 1)[:, None]",
        why="the last program is left out",
        group="many rows",
    ),
    _backward(
        id="triton-unwritten-parts",
        old="column, tl.sum(part, axis=0), mask=column < hidden)",
        new="column, tl.sum(part, axis=0), mask=column < hidden - 1)",
        why="the last column of the parts is read and was never written",
        group=MEMORY_GROUP,
    ),
    _backward(
        id="triton-mean-over-the-tile",
        old="    mean = tl.sum(gradient * normal, axis=1) / hidden",
        new="    mean = tl.sum(gradient * normal, axis=1) / wide",
        why="the mean is over the tile, not over the row",
        group="small hidden sizes",
    ),
    _backward(
        id="triton-weight-in-dweight",
        old="    return upstream * normal",
        new="    return gradient * normal",
        why="the gradient of the weight is multiplied by the weight",
        group="many rows",
    ),
    _backward(
        id="triton-rows-twice",
        old="    step = tl.num_programs(0) * tall",
        new="    step = tl.num_programs(0) * ((tall + 1) // 2)",
        why="tiles overlap by half, so most rows count twice",
        group="many rows",
    ),
    _backward(
        id="triton-columns-of-x",
        old="        total += upstream * normal",
        new="        total += upstream * normal / _root",
        why="x is not multiplied by rstd where columns are added up",
        group="small hidden sizes",
    ),
    _backward(
        id="triton-first-rows-only",
        old="    for first in range(0, rows, high):",
        new="    for first in range(0, high, high):",
        why="a column's sum ends with the first tile",
        group="many rows",
    ),
    _backward(
        id="triton-last-slab-missing",
        old="        slabs = triton.cdiv(hidden, SLAB)",
        new="        slabs = max(1, hidden // SLAB)",
        why="columns behind the last whole slab are never written",
        group="hidden sizes around a border",
    ),
)
