"""RG-LRU backward: the gradients of x, gx, ga, C and h0 from that of every state, dh.

With k_t = a_t (dh_t + k_{t+1}), from the last step on, and the whole gradient g_t = dh_t + k_{t+1} of h_t:

    dx  = g s i                     dgx = g s x i (1 - i)
    q   = g (d a h_{t-1} - i x a^2 d / s)           as dh_t/dd = -a h_{t-1} + i x a^2 / s
    dga = -(1 - r) q                dC  = -sum(q) sigmoid(C) / softplus(C)         dh0 = k_1

d / s goes to 0 with d, and counts as 0 where d is 0. h is given in its type: the oracle takes it as it is. A
kernel may compute the states again instead, which differ by the rounding of h and by H, the bound of forward.

Bounds, with G the error of g from the scan, s(h) that of storing h in the type, and D, A, S, I, R the
relative errors of d, a, s, i and r in ``gates``:
    dq  = G |q / g| + |g| (|d a h| (D + A + 3 u) + d a (H + s(h)) + |i x a^2 d / s| (I + 2 A + D + S + 5 u))
          + u |q|
    dx  = s i (G + |g| (S + I + 2 u)),   dgx likewise, with i I + u more of 1 - i
    dga = (1 - r) dq + |q| (r R + 2 u)
    dC  = ratio (sum_error(q) + sum dq + |sum q| (e(C) + 16 u))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grader.problems import bounds
from grader.problems.distributions import generator, normal
from grader.problems.grid import MAGNITUDES, with_grid
from grader.problems.problem import (
    ANY_TYPE,
    ArrayParameter,
    Candidate,
    Case,
    Expectation,
    Inputs,
    KernelProblem,
    Role,
    ScalarParameter,
    Slices,
    StreamParameter,
    several_types,
)

from .gates import CLOSED, MIDDLE, OPEN, Gates, gates
from .rglru_forward import WITHOUT_DECAY, scanned
from .rglru_forward import inputs as forward_inputs
from .shapes import (
    GROUPS,
    TYPES,
    UNIT,
    VALUES,
    element_bytes,
    graded,
    scan,
    shape_of,
    some_sequences,
    space,
    start_in,
    states,
    stored,
    timing_cases,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Bug = Callable[[Inputs], Mapping[str, Array]]


def cases(seed: int) -> tuple[Case, ...]:
    """Fixed shapes with fresh content, and sizes drawn from the seed."""
    table = (
        (VALUES, "float32", 2, 300, 8, OPEN),
        (VALUES, "float32", 2, 300, 8, CLOSED),
        (VALUES, "float32", 2, 300, 8, MIDDLE),
        (VALUES, "float32", 2, 70, 8, WITHOUT_DECAY),
        (VALUES, "float32", 1, 3, 64, OPEN),  # so few steps that dC is bounded as tightly as one product
    )
    return graded(seed, table)


def inputs(case: Case) -> Inputs:
    """The inputs of the forward problem, its states h, and their gradients dh [batch, length, width]."""
    forward = forward_inputs(case)
    batch, length, width = shape = shape_of(case)
    gate = gates(forward)
    h = states(gate.a, gate.s * gate.i * forward.wide("x"), start_in(forward))
    dh = normal(generator(case.seed + 1), shape)
    return Inputs(
        arrays={
            "dh": stored(dh, case),
            **{name: forward.arrays[name] for name in ("x", "gx", "ga", "c")},
            "h": stored(h, case),
            "h0": forward.arrays["h0"],
        },
        outputs={"dx": shape, "dgx": shape, "dga": shape, "dc": (width,), "dh0": (batch, width)},
        scalars={"batch": batch, "length": length, "width": width},
    )


def _before(data: Inputs) -> Array:
    """The state before each step."""
    return np.concatenate((start_in(data)[:, None], data.wide("h")[:, :-1]), axis=1)


def oracle(case: Case, data: Inputs) -> Mapping[str, Expectation]:
    """All five gradients in float64."""
    gate, dh, x, before = gates(data), data.wide("dh"), data.wide("x"), _before(data)
    precision, single = bounds.PRECISIONS[case.dtype], bounds.PRECISIONS["float32"]
    g, k, g_off, k_off = _scanned_back(gate, dh)
    size, h_off = np.abs(g), scanned(gate, data).error
    again = np.concatenate((np.zeros_like(h_off[:, :1]), h_off[:, :-1]), axis=1)
    of_h, of_x = gate.d * gate.a * before, _of_input(gate, x)
    per_g = of_h - of_x
    q = g * per_g
    q_off = (
        g_off * np.abs(per_g)
        + size * np.abs(of_h) * (gate.d_off + gate.a_off + 3 * UNIT)
        + size * gate.d * gate.a * (again + bounds.storing(before, precision))
        + size * np.abs(of_x) * (gate.i_off + 2 * gate.a_off + gate.d_off + gate.s_off + 5 * UNIT)
        + UNIT * np.abs(q)
    )
    scale = gate.s * gate.i
    scale_off = g_off + size * (gate.s_off + gate.i_off + 2 * UNIT)
    closed, closed_off = (1 - gate.i) * np.abs(x), (gate.i * gate.i_off + 4 * UNIT) * np.abs(x)
    dx, dgx, dga = g * scale, g * scale * x * (1 - gate.i), -(1 - gate.r) * q
    dc = -gate.ratio * q.sum(axis=(0, 1))
    c_off = bounds.exp_error(data.wide("c"), UNIT) + 16 * UNIT
    flat = q.reshape(-1, q.shape[2])
    dc_error = (
        gate.ratio * (bounds.sum_error(flat, 0, 1.0, UNIT)[0] + q_off.sum(axis=(0, 1))) + np.abs(dc) * c_off
    )
    errors = {
        "dx": (dx, scale * scale_off, precision),
        "dgx": (dgx, scale * (scale_off * closed + size * closed_off), precision),
        "dga": (dga, (1 - gate.r) * q_off + np.abs(q) * (gate.r * gate.r_off + 2 * UNIT), precision),
        "dc": (dc, dc_error, single),
        "dh0": (k[:, 0], k_off[:, 0], single),
    }
    return {
        name: Expectation((Candidate(value, bounds.allowed(error, value, kind)),))
        for name, (value, error, kind) in errors.items()
    }


def _scanned_back(gate: Gates, dh: Array) -> tuple[Array, Array, Array, Array]:
    """G and k of all steps, and their errors."""
    a, terms = gate.a[:, ::-1], (gate.a * dh)[:, ::-1]
    exact = scan(
        a,
        terms,
        np.zeros_like(dh[:, 0]),
        a * gate.a_off[:, ::-1],
        np.abs(terms) * (gate.a_off[:, ::-1] + UNIT),
    )
    k, k_off = exact.value[:, ::-1], exact.error[:, ::-1]
    later, later_off = (
        np.concatenate((part[:, 1:], np.zeros_like(part[:, :1])), axis=1) for part in (k, k_off)
    )
    g = dh + later
    return g, k, later_off + UNIT * np.abs(g), k_off


def _of_input(gate: Gates, x: Array) -> Array:
    """I x a^2 d / s, which is 0 where d is."""
    share = np.divide(gate.d, gate.s, out=np.zeros_like(gate.d), where=gate.s > 0)
    return np.asarray(gate.i * x * gate.a**2 * share)


def minimal_bytes(case: Case) -> int:
    """Five arrays read, three written; C, h0 and their gradients."""
    batch, length, width = shape_of(case)
    return 8 * element_bytes(case) * batch * length * width + 8 * (batch + 1) * width


def _g(data: Inputs) -> Array:
    gate, dh = gates(data), data.wide("dh")
    k = states(gate.a[:, ::-1], (gate.a * dh)[:, ::-1], np.zeros_like(dh[:, 0]))[:, ::-1]
    return np.asarray(dh + np.concatenate((k[:, 1:], np.zeros_like(k[:, :1])), axis=1))


def _wrong(name: str, formula: Callable[[Array, Gates, Array, Array], Array]) -> Bug:
    """A wrong output from g, the gates, x and the states before."""
    return lambda data: {name: formula(_g(data), gates(data), data.wide("x"), _before(data))}


def _q(g: Array, gate: Gates, x: Array, before: Array) -> Array:
    return np.asarray(g * (gate.d * gate.a * before - _of_input(gate, x)))


def _dc(data: Inputs, factor: Callable[[Gates], Array | float]) -> Mapping[str, Array]:
    gate = gates(data)
    q = _q(_g(data), gate, data.wide("x"), _before(data))
    return {"dc": -q.sum(axis=(0, 1)) * factor(gate)}


def _local(data: Inputs) -> Mapping[str, Array]:
    gate = gates(data)
    g, x = data.wide("dh"), data.wide("x")
    dx = g * gate.s * gate.i
    return {"dx": dx, "dgx": dx * x * (1 - gate.i), "dga": -(1 - gate.r) * _q(g, gate, x, _before(data))}


def some_channels(data: Inputs, index: NDArray[np.intp]) -> Inputs:
    """Some channels alone, which is enough for their dC."""
    arrays = {name: array[..., index] if array is not None else None for name, array in data.arrays.items()}
    outputs = {name: (*shape[:-1], index.size) for name, shape in data.outputs.items()}
    return Inputs(arrays, outputs, {**data.scalars, "width": index.size})


SPACE = space(cases(0), 8)
PROBLEM = several_types(
    KernelProblem(
        id="rglru_backward",
        file="rglru_kernel.cu",
        entry_point="launch_rglru_backward",
        parameters=(
            ArrayParameter("dx", Role.OUTPUT, ANY_TYPE),
            ArrayParameter("dgx", Role.OUTPUT, ANY_TYPE),
            ArrayParameter("dga", Role.OUTPUT, ANY_TYPE),
            ArrayParameter("dc", Role.OUTPUT),
            ArrayParameter("dh0", Role.OUTPUT),
            ArrayParameter("dh", Role.INPUT, ANY_TYPE),
            ArrayParameter("x", Role.INPUT, ANY_TYPE),
            ArrayParameter("gx", Role.INPUT, ANY_TYPE),
            ArrayParameter("ga", Role.INPUT, ANY_TYPE),
            ArrayParameter("c", Role.INPUT),
            ArrayParameter("h", Role.INPUT, ANY_TYPE),
            ArrayParameter("h0", Role.INPUT),
            ScalarParameter("batch", "int"),
            ScalarParameter("length", "int"),
            ScalarParameter("width", "int"),
            StreamParameter("stream"),
        ),
        groups=(*GROUPS, MAGNITUDES),
        cases=with_grid(cases, SPACE),
        timing_cases=timing_cases,
        inputs=inputs,
        oracle=oracle,
        minimal_bytes=minimal_bytes,
        slices=(
            Slices(("dx", "dgx", "dga", "dh0"), lambda case: case.sizes["batch"], some_sequences),
            Slices(("dc",), lambda case: case.sizes["width"], some_channels),
        ),
        space=SPACE,
        bugs={
            "the gradient is not carried to earlier steps": _local,
            "dx lacks the input gate": _wrong("dx", lambda g, t, _x, _h: g * t.s),
            "dx lacks sqrt(1 - a^2)": _wrong("dx", lambda g, t, _x, _h: g * t.i),
            "dgx lacks x": _wrong("dgx", lambda g, t, _x, _h: g * t.s * t.i * (1 - t.i)),
            "dgx lacks 1 - i": _wrong("dgx", lambda g, t, x, _h: g * t.s * t.i * x),
            "dga lacks the gradient through sqrt(1 - a^2)": _wrong(
                "dga", lambda g, t, _x, h: -(1 - t.r) * g * t.d * t.a * h
            ),
            "dga lacks the gradient through a h": _wrong(
                "dga", lambda g, t, x, _h: (1 - t.r) * g * _of_input(t, x)
            ),
            "the gradient through sqrt(1 - a^2) has the wrong sign in dga": _wrong(
                "dga", lambda g, t, x, h: -(1 - t.r) * g * (t.d * t.a * h + _of_input(t, x))
            ),
            "dga lacks 1 - r": _wrong("dga", lambda g, t, x, h: -_q(g, t, x, h)),
            "dga has the wrong sign": _wrong("dga", lambda g, t, x, h: (1 - t.r) * _q(g, t, x, h)),
            "dC has the wrong sign": lambda data: _dc(data, lambda gate: -gate.ratio),
            "dC lacks sigmoid(C) / softplus(C)": lambda data: _dc(data, lambda _: 1.0),
        },
    ),
    TYPES,
)
