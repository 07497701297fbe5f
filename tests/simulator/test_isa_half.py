"""Half and bfloat16 against torch and exact arithmetic: every pattern where there are few enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from instructions import Probe, run

if TYPE_CHECKING:
    from collections.abc import Callable

RANDOM = np.random.default_rng(11)
ALL = np.arange(1 << 16, dtype=np.uint16)
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16}


def reals(bits: np.ndarray, kind: str) -> torch.Tensor:
    return torch.from_numpy(bits.view(np.int16).copy()).view(TYPES[kind]).double()


def patterns(values: torch.Tensor, kind: str) -> np.ndarray:
    """Rounded to nearest, NaN as the canonical one."""
    # By way of a float rounded to odd: torch would round twice.
    single = values.float()
    bits = single.view(torch.int32)
    inexact = (single.double() != values) & torch.isfinite(values) & (bits & 1 == 0)
    outward = single.double().abs() < values.abs()
    odd = torch.where(inexact, torch.where(outward, bits + 1, bits - 1), bits).view(torch.float32)
    narrow = odd.to(TYPES[kind])
    bits = narrow.view(torch.int16).numpy().view(np.uint16).copy()
    bits[torch.isnan(values).numpy()] = 0x7FFF
    return bits


def some(count: int = 60000) -> tuple[np.ndarray, ...]:
    return tuple(RANDOM.permutation(ALL)[:count] for _ in range(3))


@pytest.mark.parametrize("kind", TYPES)
def test_arithmetic_is_correctly_rounded(kind: str) -> None:
    a, b, c = some()
    x, y, z = (reals(v, kind) for v in (a, b, c))
    # Sums of bfloat16 may need more bits than a double has; such pairs round to the greater operand anyway.
    expected = {"add": x + y, "sub": x - y, "mul": x * y}
    probes = [Probe(f"{name}.{kind} {{d}}, {{a}}, {{b}}", "b16", ("b16", "b16")) for name in expected]
    for (name, value), got in zip(expected.items(), run(probes, [(a, b)] * 3), strict=True):
        np.testing.assert_array_equal(got, patterns(value, kind), err_msg=name)
    (got,) = run([Probe(f"fma.rn.{kind} {{d}}, {{a}}, {{b}}, {{c}}", "b16", ("b16",) * 3)], [(a, b, c)])
    product = x * y
    exact = torch.isfinite(product + z) & ((product + z) - product == z) & ((product + z) - z == product)
    keep = exact.numpy()
    assert keep.sum() > 1000
    np.testing.assert_array_equal(got[keep], patterns(product + z, kind)[keep])


@pytest.mark.parametrize("kind", TYPES)
def test_pairs_are_two_halves(kind: str) -> None:
    low, high, other = some(4096)
    a, b = (
        low.astype(np.uint32) | high.astype(np.uint32) << 16,
        other.astype(np.uint32) | low.astype(np.uint32) << 16,
    )
    names = ("add", "mul", "min", "max")
    probes = [Probe(f"{n}.{kind}x2 {{d}}, {{a}}, {{b}}", "b32", ("b32", "b32")) for n in names]
    halves = [Probe(f"{n}.{kind} {{d}}, {{a}}, {{b}}", "b16", ("b16", "b16")) for n in names]
    for both, lower, upper in zip(
        run(probes, [(a, b)] * 4),
        run(halves, [(low, other)] * 4),
        run(halves, [(high, low)] * 4),
        strict=True,
    ):
        np.testing.assert_array_equal(both & 0xFFFF, lower)
        np.testing.assert_array_equal(both >> 16, upper)


@pytest.mark.parametrize("kind", TYPES)
def test_conversions_of_every_pattern(kind: str) -> None:
    (wide,) = run([Probe(f"cvt.f32.{kind} {{d}}, {{a}}", "f32", ("b16",))], [(ALL,)])
    expected = reals(ALL, kind).float().numpy()
    np.testing.assert_array_equal(wide, expected)
    singles = np.concatenate(
        [expected, RANDOM.integers(0, 1 << 32, 200000, dtype=np.uint32).view(np.float32)]
    )
    singles = np.concatenate(
        [
            singles,
            np.nextafter(expected, np.float32(np.inf)),
            RANDOM.standard_normal(50000).astype(np.float32) * np.float32(1e-7),
        ]
    )
    near, cut = run(
        [Probe(f"cvt.{mode}.{kind}.f32 {{d}}, {{a}}", "b16", ("f32",)) for mode in ("rn", "rz")],
        [(singles,)] * 2,
    )
    np.testing.assert_array_equal(near, patterns(torch.from_numpy(singles), kind))
    # Cutting off never grows the magnitude, and by less than one step.
    finite = np.isfinite(singles) & (near & 0x7FFF != {"f16": 0x7C00, "bf16": 0x7F80}[kind])
    magnitude, rounded = (cut & 0x7FFF).astype(int)[finite], (near & 0x7FFF).astype(int)[finite]
    assert set(np.unique(rounded - magnitude)) <= {0, 1}
    assert np.all(np.abs(reals(cut, kind).numpy()[finite]) <= np.abs(singles[finite].astype(np.float64)))


@pytest.mark.parametrize("kind", TYPES)
def test_comparisons_and_minimum(kind: str) -> None:
    a, b, _ = some()
    x, y = reals(a, kind), reals(b, kind)
    relations: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
        "eq": torch.eq,
        "lt": torch.lt,
        "ge": torch.ge,
    }
    probes = [Probe(f"setp.{name}.{kind} {{d}}, {{a}}, {{b}}", "pred", ("b16", "b16")) for name in relations]
    for (name, relation), got in zip(relations.items(), run(probes, [(a, b)] * 3), strict=True):
        np.testing.assert_array_equal(got.astype(bool), relation(x, y).numpy(), err_msg=name)
    (smaller,) = run([Probe(f"min.{kind} {{d}}, {{a}}, {{b}}", "b16", ("b16", "b16"))], [(a, b)])
    np.testing.assert_array_equal(reals(smaller, kind).numpy(), torch.fmin(x, y).numpy())


def test_directed_roundings_to_half() -> None:
    singles = np.concatenate(
        [
            reals(ALL, "f16").float().numpy(),
            RANDOM.standard_normal(50000).astype(np.float32),
            RANDOM.standard_normal(20000).astype(np.float32) * np.float32(1e-7),
            np.array([65505.0, 65519.0, 1e30, -1e30, 1e-30, -1e-30, np.inf, -np.inf], np.float32),
        ]
    )
    probes = [Probe(f"cvt.{mode}.f16.f32 {{d}}, {{a}}", "b16", ("f32",)) for mode in ("rm", "rp")]
    below, above = (reals(got, "f16").numpy() for got in run(probes, [(singles,)] * 2))
    known = ~np.isnan(singles)
    assert np.all(np.isnan(below[~known]) & np.isnan(above[~known]))
    singles, below, above = singles[known].astype(np.float64), below[known], above[known]
    assert np.all((below <= singles) & (singles <= above))
    # Nothing lies between the two.
    halves = np.unique(reals(ALL[(ALL & 0x7C00 != 0x7C00) | (ALL & 0x3FF == 0)], "f16").numpy())
    steps = np.searchsorted(halves, above) - np.searchsorted(halves, below)
    np.testing.assert_array_equal(steps, (below != above).astype(int))
    (whole,) = run([Probe("cvt.rp.f16.s32 {d}, {a}", "b16", ("s32",))], [(np.array([2049, -2049, 70000]),)])
    np.testing.assert_array_equal(reals(whole, "f16").numpy(), [2050, -2048, np.inf])
