"""Wrong kernels in Triton: edits of ``reference_triton``, with the reason of each."""

from __future__ import annotations

from functools import partial

from grader.assignments.mutants import Mutant
from grader.problems.problem import MEMORY_GROUP

_mutant = partial(Mutant, file="rglru_kernel.py", language="triton")
_scan = partial(_mutant, problem="linear_scan")
_forward, _backward = (partial(_mutant, problem=f"rglru_{way}") for way in ("forward", "backward"))

SHORT, BORDER, LONG = "short sequences", "lengths around a border", "long sequences"
WIDTHS, STATE, VALUES = "widths", "initial state", "slow and fast decay"
_BEGIN_OF_SCAN = """    sequence = tl.program_id(1).to(tl.int64)
    carry = tl.zeros((channels,), tl.float32)
    if started:
        carry = tl.load(h0 + {place}channel"""

MUTANTS = (
    _scan(
        id="triton-scan-no-carry",
        old="        state, carry = carried(factor, value, carry",
        new="        state, _carry = carried(factor, value, carry",
        why="every tile begins with the initial state",
        group=LONG,
    ),
    _scan(
        id="triton-scan-first-state-for-all",
        old=_BEGIN_OF_SCAN.format(place="sequence * width + "),
        new=_BEGIN_OF_SCAN.format(place=""),
        why="every sequence begins with the state of the first",
        group=STATE,
    ),
    _scan(
        id="triton-scan-backwards",
        old="carried(factor, value, carry, time, first + steps - 1, False)",
        new="carried(factor, value, carry, time, first + steps - 1, True)",
        why="time runs backwards",
        group=SHORT,
    ),
    _scan(
        id="triton-scan-own-factor",
        old="    return factor * next_factor, next_factor * value + next_value",
        new="    return factor * next_factor, factor * value + next_value",
        why="what came before is multiplied by its own factor again",
        group=SHORT,
    ),
    _scan(
        id="triton-scan-half",
        old="        value = tl.load(b + at, mask=inside, other=0.0).to(tl.float32)",
        new="        value = tl.load(b + at, mask=inside, other=0.0).to(tl.float16).to(tl.float32)",
        why="float32 is rounded to float16",
        group=BORDER,
    ),
    _scan(
        id="triton-scan-whole-slabs",
        old="    return triton.cdiv(width, tile(width)[1]), batch",
        new="    return max(1, width // tile(width)[1]), batch",
        why="channels behind the last whole slab are left out",
        group=WIDTHS,
    ),
    _scan(
        id="triton-scan-past-the-end",
        old="        factor = tl.load(a + at, mask=inside, other=1.0)",
        new="        factor = tl.load(a + at, mask=(channel < width)[None, :], other=1.0)",
        why="steps behind the last one are read",
        group=MEMORY_GROUP,
    ),
    _forward(
        id="triton-fw-no-input-gate",
        old="value = s * gate * tl.load(x + at",
        new="value = s * tl.load(x + at",
        why="the input gate is not applied",
        group=SHORT,
    ),
    _forward(
        id="triton-fw-no-root",
        old="value = s * gate * tl.load(x + at",
        new="value = gate * tl.load(x + at",
        why="the input is not multiplied by sqrt(1 - a^2)",
        group=SHORT,
    ),
    _forward(
        id="triton-fw-no-eight",
        old="    d = 8.0 * sigmoid(ga) * slope",
        new="    d = sigmoid(ga) * slope",
        why="the constant of the decay is missing",
        group=SHORT,
    ),
    _forward(
        id="triton-fw-no-softplus",
        old="libdevice.log1p(tl.exp(tl.load(c + channel, mask=channel < width, other=0.0)))[None, :]",
        new="tl.load(c + channel, mask=channel < width, other=0.0)[None, :]",
        why="the parameter is taken as it is",
        group=SHORT,
    ),
    _forward(
        id="triton-fw-literal-root",
        old="tl.sqrt_rn(-libdevice.expm1(-2.0 * d))",
        new="tl.sqrt_rn(1.0 - tl.exp(-2.0 * d))",
        why="1 - a^2 loses its digits where a is near 1",
        group=VALUES,
    ),
    _forward(
        id="triton-fw-no-carry",
        old="        state, carry = carried(factor, tl.where(inside, value, 0.0)",
        new="        state, _carry = carried(factor, tl.where(inside, value, 0.0)",
        why="every tile begins with the initial state",
        group=LONG,
    ),
    _forward(
        id="triton-fw-no-h0",
        old="forward[grid](h, x, gx, ga, c, h0 if started else c, length, width, started,",
        new="forward[grid](h, x, gx, ga, c, h0 if started else c, length, width, False,",
        why="the initial state is left out",
        group=STATE,
    ),
    _backward(
        id="triton-bw-factor-of-this-step",
        old="tl.load(ga + at + width, mask=later, other=0.0)",
        new="tl.load(ga + at, mask=later, other=0.0)",
        why="gradients are carried on by the factor of the step itself",
        group=BORDER,
    ),
    _backward(
        id="triton-bw-no-carry",
        old="        g, carry = carried(",
        new="        g, _carry = carried(",
        why="a tile knows nothing of the steps behind it",
        group=LONG,
    ),
    _backward(
        id="triton-bw-sign-of-the-root",
        old="before - i * value * a * a * ratio",
        new="before + i * value * a * a * ratio",
        why="the gradient through sqrt(1 - a^2) has the wrong sign",
        group=SHORT,
    ),
    _backward(
        id="triton-bw-no-first-state",
        old="            before = tl.where((time == 0)[:, None], start[None, :], before)",
        new="            before += 0 * start[None, :]",
        why="the first step takes its state before for zero",
        group=STATE,
    ),
    _backward(
        id="triton-bw-last-tile-only",
        old="        part += tl.sum(q, axis=0)",
        new="        part = tl.sum(q, axis=0)",
        why="dC has the last tile alone",
        group=LONG,
    ),
    _backward(
        id="triton-bw-no-ratio",
        old="    tl.store(dc + channel, -total * ratio",
        new="    tl.store(dc + channel, -total",
        why="dC lacks the derivative of softplus",
        group=SHORT,
    ),
    _backward(
        id="triton-bw-nan-without-decay",
        old="tl.where(d > 0.0, d / s, 0.0)",
        new="d / s",
        why="a factor of exactly 1 gives 0 divided by 0",
        group=VALUES,
    ),
    _backward(
        id="triton-bw-unwritten-parts",
        old="    tl.store(parts + sequence * width + channel, part, mask=there)",
        new="    tl.store(parts + sequence * width + channel, part, mask=channel < width - 1)",
        why="the parts of the last channel are read and were never written",
        group=MEMORY_GROUP,
    ),
)
