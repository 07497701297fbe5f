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
_OF_LATER = "            factors = factors + (tl.where((s < left)[:, None], a, 1.0),)"
_OF_THIS = "            _d, a, _square, _inverse = decay(gas[s].to(tl.float32), slope)"

MUTANTS = (
    _scan(
        id="triton-scan-no-carry",
        old="load_steps(b + tile, at, width, left, there, 0.0, steps)\n        states, carry =",
        new="load_steps(b + tile, at, width, left, there, 0.0, steps)\n        states, _carry =",
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
        old="tl.associative_scan((factor, value, one, zero), 0, compose)",
        new="tl.associative_scan((factor, value, one, zero), 0, compose, reverse=True)",
        why="the groups of a tile are combined from the last to the first",
        group=SHORT,
    ),
    _scan(
        id="triton-scan-own-factor",
        old="        next_factor * value + next_value,",
        new="        factor * value + next_value,",
        why="what came before is multiplied by its own factor again",
        group=SHORT,
    ),
    _scan(
        id="triton-scan-half",
        old="value * step + values[s].to(tl.float32)",
        new="value * step + values[s].to(tl.float16).to(tl.float32)",
        why="float32 is rounded to float16",
        group=BORDER,
    ),
    _scan(
        id="triton-scan-whole-slabs",
        old="    return triton.cdiv(width, channels_of(width)), batch",
        new="    return max(1, width // channels_of(width)), batch",
        why="channels behind the last whole slab are left out",
        group=WIDTHS,
    ),
    _scan(
        id="triton-scan-past-the-end",
        old="    factors = load_steps(a + tile, at, width, left,",
        new="    factors = load_steps(a + tile, at, width, left + 1,",
        why="the step behind the last one is read",
        group=MEMORY_GROUP,
    ),
    _forward(
        id="triton-fw-no-input-gate",
        old="square * inverse * i * value",
        new="square * inverse * value",
        why="the input gate is not applied",
        group=SHORT,
    ),
    _forward(
        id="triton-fw-no-root",
        old="square * inverse * i * value",
        new="i * value",
        why="the input is not multiplied by sqrt(1 - a^2)",
        group=SHORT,
    ),
    _forward(
        id="triton-fw-no-eight",
        old="    return 8.0 * libdevice",
        new="    return libdevice",
        why="the constant of the decay is missing",
        group=SHORT,
    ),
    _forward(
        id="triton-fw-no-softplus",
        old="libdevice.log1p(tl.exp(tl.load(c + channel, mask=there, other=0.0)))[None, :]",
        new="tl.load(c + channel, mask=there, other=0.0)[None, :]",
        why="the parameter is taken as it is",
        group=SHORT,
    ),
    _forward(
        id="triton-fw-literal-root",
        old="tl.where(d > 0.25, 1.0 - a * a, near)",
        new="1.0 - a * a + 0.0 * near",
        why="1 - a^2 loses its digits where a is near 1",
        group=VALUES,
    ),
    _forward(
        id="triton-fw-no-carry",
        old="i * value,)\n        states, carry =",
        new="i * value,)\n        states, _carry =",
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
        old=f"{_OF_LATER}\n{_OF_THIS}",
        new=f"{_OF_THIS}\n{_OF_LATER}",
        why="gradients are carried on by the factor of the step itself",
        group=BORDER,
    ),
    _backward(
        id="triton-bw-no-carry",
        old="        gs, carry = scan_tile(",
        new="        gs, _carry = scan_tile(",
        why="a tile knows nothing of the steps behind it",
        group=LONG,
    ),
    _backward(
        id="triton-bw-sign-of-the-root",
        old="(state - i * value * a * inverse)",
        new="(state + i * value * a * inverse)",
        why="the gradient through sqrt(1 - a^2) has the wrong sign",
        group=SHORT,
    ),
    _backward(
        id="triton-bw-no-first-state",
        old="                state = tl.where((s + 1 == left)[:, None], start[None, :], state)",
        new="                state += 0 * start[None, :]",
        why="the first step takes its state before for zero",
        group=STATE,
    ),
    _backward(
        id="triton-bw-last-tile-only",
        old="        dxs, dgxs, dgas = (), (), ()",
        new="        lost = tl.zeros((groups, channels), tl.float32)\n        dxs, dgxs, dgas = (), (), ()",
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
        old="tl.rsqrt(tl.maximum(square, 1e-37))",
        new="tl.rsqrt(square)",
        why="a factor of exactly 1 gives 0 times infinity",
        group=VALUES,
    ),
    _backward(
        id="triton-bw-unwritten-parts",
        old="channel, tl.sum(lost, axis=0), mask=there)",
        new="channel, tl.sum(lost, axis=0), mask=channel < width - 1)",
        why="the parts of the last channel are read and were never written",
        group=MEMORY_GROUP,
    ),
)
