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
        old="        part += tl.sum(upstream * normal, axis=0)",
        new="        part = tl.sum(upstream * normal, axis=0)",
        why="each program keeps only the last of its tiles",
        group="many rows",
    ),
    _backward(
        id="triton-programs-short",
        old="for first in range(0, programs, tall):",
        new="for first in range(0, programs - 1, tall):",
        why="where there is one program, it is left out",
        group="small hidden sizes",
    ),
    _backward(
        id="triton-unwritten-parts",
        old="    tl.store(parts + tl.program_id(0) * hidden + column, part, mask=column < hidden)",
        new="    tl.store(parts + tl.program_id(0) * hidden + column, part, mask=column < hidden - 1)",
        why="the last column of the parts is read and was never written",
        group=MEMORY_GROUP,
    ),
    _backward(
        id="triton-mean-over-the-tile",
        old="        mean = tl.sum(gradient * normal, axis=1) / hidden",
        new="        mean = tl.sum(gradient * normal, axis=1) / wide",
        why="the mean is over the tile, not over the row",
        group="small hidden sizes",
    ),
    _backward(
        id="triton-weight-in-dweight",
        old="        part += tl.sum(upstream * normal, axis=0)",
        new="        part += tl.sum(gradient * normal, axis=0)",
        why="the gradient of the weight is multiplied by the weight",
        group="small hidden sizes",
    ),
    _backward(
        id="triton-rows-twice",
        old="rows, tl.num_programs(0) * tall):",
        new="rows, tl.num_programs(0)):",
        why="programs go through the rows of others as well",
        group="many rows",
    ),
)
