"""Floating-point instructions against exact rational arithmetic, on edge values and random patterns."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from exact import F32, FORMATS, ieee, pattern
from instructions import Probe, pairs, run

if TYPE_CHECKING:
    from collections.abc import Callable

RANDOM = np.random.default_rng(7)


def edges32() -> np.ndarray:
    special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        1.5,
        3.0,
        math.inf,
        -math.inf,
        math.nan,
        2.0**-149,
        -(2.0**-149),
        2.0**-126,
    ]
    special += [
        3.4028234663852886e38,
        -3.4028234663852886e38,
        1 + 2.0**-23,
        1 - 2.0**-24,
        16777216.0,
        0.1,
        1e-30,
        1e30,
    ]
    special += [2.0**-127, 2.0**-126 - 2.0**-149]
    return np.array(special, np.float32)


def random32(count: int) -> np.ndarray:
    return RANDOM.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32)


def operands(kind: str) -> tuple[np.ndarray, np.ndarray]:
    a, b = pairs(edges32())
    near = RANDOM.standard_normal(200).astype(np.float32)
    a = np.concatenate([a, random32(200), near])
    b = np.concatenate([b, random32(200), near[::-1] * np.float32(1e-3)])
    if kind == "f32":
        return a, b
    with np.errstate(invalid="ignore"):  # signalling NaN
        return a.astype(np.float64) * (1 + 2.0**-40), b.astype(np.float64) * (1 - 2.0**-45)


def verify(table: list[tuple[Probe, tuple[np.ndarray, ...], Callable[..., float]]]) -> None:
    results = run([probe for probe, _, _ in table], [arrays for _, arrays, _ in table])
    for (probe, arrays, oracle), got in zip(table, results, strict=True):
        bits = got.view(np.uint32 if probe.result == "f32" else np.uint64)
        for row, value in zip(zip(*(x.tolist() for x in arrays), strict=True), bits.tolist(), strict=True):
            expected = oracle(*row)
            if math.isnan(expected) and probe.result == "f64":
                assert math.isnan(struct.unpack("<d", struct.pack("<Q", value))[0]), f"{probe.text} of {row}"
                continue
            assert value == pattern(expected, probe.result), (
                f"{probe.text} of {row}: expected {expected}, got {value:#x}"
            )


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_four_roundings(kind: str) -> None:
    a, b = operands(kind)
    c = np.roll(a, 17)
    table = []
    for mode in ("rn", "rz", "rm", "rp"):
        for operation in ("add", "sub", "mul", "div"):
            probe = Probe(f"{operation}.{mode}.{kind} {{d}}, {{a}}, {{b}}", kind, (kind, kind))
            table.append((probe, (a, b), ieee(operation, mode, kind)))
        probe = Probe(f"fma.{mode}.{kind} {{d}}, {{a}}, {{b}}, {{c}}", kind, (kind, kind, kind))
        table.append((probe, (a, b, c), ieee("fma", mode, kind)))
    verify(table)


def test_subnormals_are_flushed_where_ftz_says_so() -> None:
    a, b = operands("f32")
    table = []
    for operation in ("add", "mul"):
        exact = ieee(operation, "rn", "f32", flushed=True)
        probe = Probe(f"{operation}.ftz.f32 {{d}}, {{a}}, {{b}}", "f32", ("f32", "f32"))
        table.append((probe, (a, b), lambda x, y, f=exact: f(F32.flushed(x), F32.flushed(y))))
    verify(table)


def test_saturation_takes_nan_to_zero() -> None:
    a, b = operands("f32")
    plain = ieee("add", "rn", "f32")

    def oracle(x: float, y: float) -> float:
        value = plain(x, y)
        return 0.0 if math.isnan(value) or value <= 0 else min(value, 1.0)

    verify([(Probe("add.sat.f32 {d}, {a}, {b}", "f32", ("f32", "f32")), (a, b), oracle)])


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_square_roots_and_reciprocals(kind: str) -> None:
    a, _ = operands(kind)

    def root(x: float) -> float:
        if x < 0 or math.isnan(x):
            return math.nan
        return (
            x if x == 0 or math.isinf(x) else float(np.sqrt(np.float32(x)) if kind == "f32" else math.sqrt(x))
        )

    one = ieee("div", "rn", kind)
    table = [
        (Probe(f"sqrt.rn.{kind} {{d}}, {{a}}", kind, (kind,)), (a,), root),
        (Probe(f"rcp.rn.{kind} {{d}}, {{a}}", kind, (kind,)), (a,), lambda x: one(1.0, x)),
    ]
    verify(table)


def test_minimum_prefers_a_number_and_negative_zero() -> None:
    a, b = operands("f32")

    def smaller(x: float, y: float) -> float:
        if math.isnan(x) or math.isnan(y):
            return y if math.isnan(x) else x
        return min(x, y, key=lambda v: (v, math.copysign(1, v)))

    def larger(x: float, y: float) -> float:
        return -smaller(-x, -y)

    def either(f: Callable[[float, float], float]) -> Callable[[float, float], float]:
        return lambda x, y: math.nan if math.isnan(x) or math.isnan(y) else f(x, y)

    two = ("f32", "f32")
    verify(
        [
            (Probe("min.f32 {d}, {a}, {b}", "f32", two), (a, b), smaller),
            (Probe("max.f32 {d}, {a}, {b}", "f32", two), (a, b), larger),
            (Probe("min.NaN.f32 {d}, {a}, {b}", "f32", two), (a, b), either(smaller)),
            (Probe("max.NaN.f32 {d}, {a}, {b}", "f32", two), (a, b), either(larger)),
        ]
    )


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_comparisons_with_nan(kind: str) -> None:
    a, b = operands(kind)
    ordered = {"eq": np.equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
    nan = np.isnan(a) | np.isnan(b)
    expected = {name: f(a, b) for name, f in ordered.items()}
    expected["ne"] = (a != b) & ~nan
    expected |= {f"{name}u": value | nan for name, value in list(expected.items())}
    expected |= {"num": ~nan, "nan": nan}
    probes = [Probe(f"setp.{name}.{kind} {{d}}, {{a}}, {{b}}", "pred", (kind, kind)) for name in expected]
    for (name, value), got in zip(expected.items(), run(probes, [(a, b)] * len(probes)), strict=True):
        np.testing.assert_array_equal(got.astype(bool), value, err_msg=name)


APPROXIMATE = {
    # name: function of a double, greatest relative error (in 2^-23 for ulp), lowest and highest operand
    "ex2.approx.f32": (np.exp2, 2 * 2.0**-23, -126.0, 127.9),
    "ex2.approx.ftz.f32": (np.exp2, 2 * 2.0**-23, -126.0, 127.9),
    "rcp.approx.f32": (np.reciprocal, 2.0**-23, 1e-37, 1e37),
    "sqrt.approx.f32": (np.sqrt, 2 * 2.0**-23, 0.0, 3e38),
    "rsqrt.approx.f32": (lambda x: 1 / np.sqrt(x), 2.0**-22.4, 1e-37, 3e38),
    "tanh.approx.f32": (np.tanh, 2.0**-11, -20.0, 20.0),
}


@pytest.mark.parametrize("name", APPROXIMATE)
def test_approximations_keep_to_their_bounds(name: str) -> None:
    function, bound, low, high = APPROXIMATE[name]
    if low > 0:
        a = np.exp(np.linspace(math.log(low), math.log(high), 4000)).astype(np.float32)
    else:
        a = np.linspace(low, high, 4000).astype(np.float32)
    (got,) = run([Probe(f"{name} {{d}}, {{a}}", "f32", ("f32",))], [(a,)])
    expected = function(a.astype(np.float64))
    assert np.all(np.abs(got - expected) <= bound * np.abs(expected))


def test_sine_and_logarithm_keep_to_their_absolute_bounds() -> None:
    turn = np.linspace(-math.pi, math.pi, 4000).astype(np.float32)
    middle = np.linspace(0.5, 2, 4000).astype(np.float32)
    names = ("sin", "cos", "lg2")
    probes = [Probe(f"{name}.approx.f32 {{d}}, {{a}}", "f32", ("f32",)) for name in names]
    sine, cosine, logarithm = run(probes, [(turn,), (turn,), (middle,)])
    assert np.abs(sine - np.sin(turn.astype(np.float64))).max() <= 2.0**-20.5
    assert np.abs(cosine - np.cos(turn.astype(np.float64))).max() <= 2.0**-20.5
    assert np.abs(logarithm - np.log2(middle.astype(np.float64))).max() <= 2.0**-22


def test_approximations_at_the_ends() -> None:
    inf, nan, huge = math.inf, math.nan, 2.0**127
    table = {
        "ex2.approx.f32": [(inf, inf), (-inf, 0.0), (nan, nan), (-0.0, 1.0), (200.0, inf), (-200.0, 0.0)],
        "lg2.approx.f32": [
            (0.0, -inf),
            (-0.0, -inf),
            (-1.0, nan),
            (inf, inf),
            (1.0, 0.0),
            (2.0**-149, -149.0),
        ],
        "rsqrt.approx.f32": [(0.0, inf), (-0.0, -inf), (-1.0, nan), (inf, 0.0), (4.0, 0.5)],
        "sin.approx.f32": [(inf, nan), (-0.0, -0.0), (nan, nan)],
        "cos.approx.f32": [(0.0, 1.0), (inf, nan)],
    }
    verify(
        [
            (
                Probe(f"{name} {{d}}, {{a}}", "f32", ("f32",)),
                (np.array([x for x, _ in rows], np.float32),),
                lambda x, rows=rows: dict(map(by_pattern, rows))[key(x)],
            )
            for name, rows in table.items()
        ]
    )
    probe = Probe("div.approx.f32 {d}, {a}, {b}", "f32", ("f32", "f32"))
    columns = (np.array([1.0, inf, 6.0], np.float32), np.array([huge, huge, 3.0], np.float32))
    (got,) = run([probe], [columns])
    assert got[0] == 0  # denominators above 2^126
    assert math.isnan(got[1])
    assert got[2] == 2


def key(x: float) -> bytes:
    return struct.pack("<f", math.nan if math.isnan(x) else x)


def by_pattern(row: tuple[float, float]) -> tuple[bytes, float]:
    return key(row[0]), row[1]


ROUNDINGS = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@pytest.mark.parametrize("source", ["f32", "f64"])
@np.errstate(invalid="ignore")  # numpy warns when it widens a signalling NaN, which chance may draw
def test_reals_to_integers_saturate(source: str) -> None:
    values = operands(source)[0]
    values = np.concatenate(
        [
            values,
            np.array([0.5, 1.5, 2.5, -0.5, -1.5, 2147483647.5, -2147483648.5, 4294967295.5, 1e19, -1e19]),
        ]
    )
    values = values.astype(np.float32 if source == "f32" else np.float64)
    limits = {
        f"{s}{bits}": (-(1 << bits - 1) if s == "s" else 0, (1 << bits - (s == "s")) - 1, bits)
        for s in "us"
        for bits in (16, 32, 64)
    }
    probes = [
        Probe(f"cvt.{r}.{target}.{source} {{d}}, {{a}}", target, (source,))
        for r in ROUNDINGS
        for target in limits
    ]
    results = iter(run(probes, [(values,)] * len(probes)))
    for rounding in ROUNDINGS.values():
        for target, (low, high, bits) in limits.items():
            nan = (1 << bits - 1 if target[0] == "u" else low) if bits == 64 or source == "f64" else 0
            whole = rounding(values.astype(np.float64))
            expected = [
                nan if math.isnan(v) else high if v > high else low if v < low else int(v)
                for v in whole.tolist()
            ]
            got = next(results)
            assert [int(v) for v in got] == expected, target


def test_integers_to_reals_round_as_asked() -> None:
    values = {
        "s32": np.array([0, 1, -1, 16777217, -16777219, 2147483647, -2147483648], np.int32),
        "u32": np.array([0, 1, 16777217, 33554435, 4294967295], np.uint32),
        "s64": np.array([0, -1, (1 << 53) + 1, -(1 << 62) - 12345, (1 << 63) - 1, -(1 << 63)], np.int64),
        "u64": np.array([0, (1 << 53) + 1, (1 << 64) - 1, (1 << 63) + 1025], np.uint64),
    }
    table = []
    for source, array in values.items():
        for target in ("f32", "f64"):
            for mode in ("rn", "rz", "rm", "rp"):
                probe = Probe(f"cvt.{mode}.{target}.{source} {{d}}, {{a}}", target, (source,))
                table.append((probe, (array,), lambda v, f=FORMATS[target], m=mode: f.round(Fraction(v), m)))
    verify(table)


def test_double_to_single_rounds_as_asked() -> None:
    values = np.concatenate(
        [operands("f64")[0], np.array([1 + 2.0**-24, 1 + 3 * 2.0**-24, 1e39, 1e-46, 2.0**-150])]
    )

    def oracle(mode: str) -> Callable[[float], float]:
        def narrow(x: float) -> float:
            if not math.isfinite(x) or x == 0:
                return x
            return F32.round(Fraction(x), mode) or math.copysign(0.0, x)

        return narrow

    verify(
        [
            (Probe(f"cvt.{m}.f32.f64 {{d}}, {{a}}", "f32", ("f64",)), (values,), oracle(m))
            for m in ("rn", "rz", "rm", "rp")
        ]
    )
