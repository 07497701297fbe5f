"""What the golden set holds of single instructions: PTX, operands, and how close the sim must come.

Operands are made here from fixed numbers, the same on every machine, so that only results are stored.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from instructions import STORED, Probe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Array = np.ndarray
THREADS = 128  # of a probe's block
TUPLES = 128  # operands of one instruction: more would swell the stored set

INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
HALVES = ("f16", "bf16")
ROUNDINGS = ("rn", "rz", "rm", "rp")


@dataclass(frozen=True)
class Bound:
    """How far two right implementations may lie apart: both may err by what the PTX ISA allows.

    ``ulps`` counts units in the last place, ``relative`` and ``absolute`` are errors of one implementation;
    all three are zero where the result is exact. Two NaN are always equal: their payload means nothing.
    """

    ulps: int = 0
    relative: float = 0.0
    absolute: float = 0.0


EXACT = Bound()


@dataclass(frozen=True)
class Case:
    """An instruction, its bound, and its operands: ``edges`` (and random bits), a range, or ``tiny``."""

    probe: Probe
    bound: Bound = EXACT
    within: tuple[float, float] | None = None
    shifts: tuple[int, ...] = ()  # operands that are small numbers: shift amounts, positions, lanes
    nonzero: tuple[int, ...] = ()  # divisors
    tiny: tuple[tuple[int, ...], ...] = ()  # patterns whose result is next to the smallest normal number

    @property
    def name(self) -> str:
        where = f" from {self.within[0]:g} to {self.within[1]:g}" if self.within else ""
        where += " next to the smallest normal number" if self.tiny else ""
        return f"{self.probe.text} -> {self.probe.result}{where}"

    def operands(self) -> tuple[Array, ...]:
        """One array of ``TUPLES`` values per operand, as stored."""
        columns = []
        for n, kind in enumerate(self.probe.operands):
            if n in self.shifts:
                values = (scrambled(TUPLES, n + 40) % np.uint64(70)).astype(STORED[kind])
            elif self.tiny:
                values = with_signs([patterns[n] for patterns in self.tiny], kind, n)
            elif self.within:
                values = spread(kind, n, *self.within)
            else:
                values = mixed(kind, n)
            if n in self.nonzero:
                values = np.where(values == 0, values.dtype.type(3), values)
            columns.append(values)
        return tuple(columns)


def scrambled(count: int, seed: int) -> Array:
    """64 random bits each, from the finaliser of splitmix64: the same with every version of numpy."""
    with np.errstate(over="ignore"):
        x = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x += np.uint64(seed) * np.uint64(0xD1342543DE82EF95)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return x ^ x >> np.uint64(31)


# (bits, bits of the fraction) of the binary formats.
FORMATS = {"f16": (16, 10), "bf16": (16, 7), "f32": (32, 23), "f64": (64, 52), "tf32": (32, 23)}


def edges(kind: str) -> list[int]:
    """Patterns where implementations go wrong."""
    bits = 8 * np.dtype(STORED[kind]).itemsize
    top = 1 << bits - 1
    if kind not in FORMATS:
        return [0, 1, 2, 3, 31, 32, 33, top - 1, top, top + 1, 2 * top - 1, 2 * top - 2, 0x5A5A5A5A5A5A5A5A]
    fraction = FORMATS[kind][1]
    infinity = top - (1 << fraction)
    one = infinity // 2 >> fraction << fraction
    magnitudes = [0, 1, (1 << fraction) - 1, 1 << fraction, one, one + 1, one - 1, one + (1 << fraction - 1)]
    magnitudes += [infinity - 1, infinity, infinity + (1 << fraction - 1), one + (fraction << fraction)]
    return [m | sign for m in magnitudes for sign in (0, top)]


def mixed(kind: str, position: int) -> Array:
    """Edges with edges, then random patterns, then (of reals) ordinary numbers."""
    dtype = np.dtype(STORED[kind])
    unsigned = np.dtype(f"u{dtype.itemsize}")
    limit = (1 << 8 * dtype.itemsize) - 1
    corner = np.array([e & limit for e in edges(kind)], np.uint64)
    # Steps without a common factor: every pair of edges comes together sooner or later.
    steps = (1, 7, 3, 5)[position % 4]
    n = np.arange(TUPLES)
    first = corner[(n * steps + n // len(corner) * (position + 1)) % len(corner)]
    values = np.where(n < TUPLES // 2, first, scrambled(TUPLES, position) & np.uint64(limit))
    values = values.astype(unsigned)
    if kind in FORMATS:
        _, fraction = FORMATS[kind]
        one = (((1 << 8 * dtype.itemsize - 1) - (1 << fraction)) // 2) >> fraction
        random = scrambled(TUPLES, position + 8)
        exponent = (random >> np.uint64(56)) % np.uint64(9) + np.uint64(one - 4)
        sign = (random >> np.uint64(55) & np.uint64(1)) << np.uint64(8 * dtype.itemsize - 1)
        ordinary = sign | exponent << np.uint64(fraction) | random & np.uint64((1 << fraction) - 1)
        values = np.where(n % 4 == 3, ordinary.astype(unsigned), values)
    return values.view(dtype)


def spread(kind: str, position: int, low: float, high: float) -> Array:
    """Values between two bounds, evenly spread; by magnitude if both are positive and far apart."""
    part = scrambled(TUPLES, position) / 2.0**64
    if low > 0 and high / low > 1e3:
        values = np.exp(math.log(low) + part * math.log(high / low))
    else:
        values = low + part * (high - low)
    if kind == "f16":
        return values.astype(np.float16).view(np.uint16)
    if kind == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return values.astype(STORED[kind])


def with_signs(patterns: list[int], kind: str, position: int) -> Array:
    """The patterns over and over, the operands of a tuple with every combination of signs."""
    unsigned = np.dtype(f"u{np.dtype(STORED[kind]).itemsize}")
    n = np.arange(TUPLES)
    signs = (n // len(patterns) >> position & 1).astype(unsigned) << unsigned.type(8 * unsigned.itemsize - 1)
    return (np.array(patterns, unsigned)[n % len(patterns)] | signs).view(STORED[kind])


def simple(name: str, result: str, *kinds: str, **how: object) -> Case:
    """``name d, a, b, …``"""
    text = f"{name} {{d}}" + "".join(f", {{{x}}}" for x, _ in zip("abce", kinds, strict=False))
    return Case(Probe(text, result, kinds), **how)  # type: ignore[arg-type]


def same(names: Iterable[str], kind: str, operands: int, **how: object) -> Iterator[Case]:
    """Instructions whose operands and result have one type."""
    for name in names:
        yield simple(f"{name}.{kind}", kind, *(kind,) * operands, **how)


def relations(names: str, kind: str) -> Iterator[Case]:
    for name in names.split():
        yield simple(f"setp.{name}.{kind}", "pred", kind, kind)


def integers(kind: str) -> Iterator[Case]:
    yield from same(("add", "sub", "mul.lo", "mul.hi", "min", "max"), kind, 2)
    yield from same(("div", "rem"), kind, 2, nonzero=(1,))
    yield from same(("mad.lo", "mad.hi", "sad"), kind, 3)
    yield simple(f"shr.{kind}", kind, kind, "u32", shifts=(1,))
    yield simple(f"slct.{kind}.s32", kind, kind, kind, "s32")
    yield from relations("eq ne lt le gt ge", kind)
    if kind[0] == "s":
        yield from same(("neg", "abs"), kind, 1)
    if kind[1:] != "64":
        wide = kind[0] + str(2 * int(kind[1:]))
        yield simple(f"mul.wide.{kind}", wide, kind, kind)
        yield simple(f"mad.wide.{kind}", wide, kind, kind, wide)
    if kind[1:] != "16":
        yield simple(f"bfe.{kind}", kind, kind, "u32", "u32", shifts=(1, 2))
        yield simple(f"bfind.{kind}", "u32", kind)
        yield simple(f"bfind.shiftamt.{kind}", "u32", kind)


def integer_cases() -> Iterator[Case]:
    for kind in INTEGERS:
        yield from integers(kind)
    yield from same(("add.sat", "sub.sat"), "s32", 2)
    yield from same(("mad.hi.sat",), "s32", 3)
    for kind in ("u32", "s32"):
        yield from same(("mul24.lo", "mul24.hi"), kind, 2)
    for kind in ("u16x2", "s16x2"):
        yield from same(("add", "min", "max"), kind, 2)


def bits(kind: str) -> Iterator[Case]:
    yield from same(("and", "or", "xor"), kind, 2)
    yield from same(("not", "cnot"), kind, 1)
    yield simple(f"shl.{kind}", kind, kind, "u32", shifts=(1,))
    if kind != "b16":
        for name in ("popc", "clz"):
            yield simple(f"{name}.{kind}", "u32", kind)
        yield simple(f"brev.{kind}", kind, kind)
        yield simple(f"bfi.{kind}", kind, kind, kind, "u32", "u32", shifts=(2, 3))


def bit_cases() -> Iterator[Case]:
    for kind in ("b16", "b32", "b64"):
        yield from bits(kind)
    three = ("b32", "b32", "b32")
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        yield simple(f"prmt.b32{mode}", "b32", *three)
    for way, limit in itertools.product("lr", ("wrap", "clamp")):
        yield simple(f"shf.{way}.{limit}.b32", "b32", *three, shifts=(2,))
    for code in (0x96, 0xE8, 0x1B, 0xC0):
        yield Case(Probe(f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {code}", "b32", three))
    for name, a, b in itertools.product(("dp4a", "dp2a.lo", "dp2a.hi"), ("u32", "s32"), ("u32", "s32")):
        yield simple(f"{name}.{a}.{b}", "b32", *three)
    for parts, how in itertools.product((2, 4), ("", ".add")):
        yield simple(f"vabsdiff{parts}.u32.u32.u32{how}", "b32", *three)
    for limit in ("wrap", "clamp"):
        yield simple(f"bmsk.{limit}.b32", "b32", "b32", "b32", shifts=(0, 1))
    nth = "{{ .reg .u32 x; and.b32 x, {b}, 31; fns.b32 {d}, {a}, x, {c}; }}"
    yield Case(Probe(nth, "b32", ("b32", "b32", "s32")), shifts=(1, 2))
    for body in (
        "add.cc.u32 u, l, x; addc.u32 v, h, y",
        "sub.cc.u32 u, l, x; subc.u32 v, h, y",
        "mad.lo.cc.u32 u, l, x, y; madc.hi.u32 v, l, x, h",
    ):
        yield Case(Probe(CHAIN % body, "b64", ("b64", "b64")))
    yield from mixed_chains()


def mixed_chains() -> Iterator[Case]:
    """Every instruction that writes the carry flag before every one that reads it."""
    writers = (
        "add.cc.{0} x, {1}",
        "sub.cc.{0} x, {1}",
        "mad.lo.cc.{0} x, {1}, {{c}}",
        "mad.hi.cc.{0} x, {1}, {{c}}",
    )
    readers = ("addc.{0} {1}", "subc.{0} {1}", "madc.lo.{0} {1}, {{a}}", "madc.hi.{0} {1}, {{a}}")
    for kind, writer, reader in itertools.product(("u32", "s32", "u64", "s64"), writers, readers):
        steps = writer.format(kind, "{a}, {b}") + "; " + reader.format(kind, "{d}, {c}, {e}")
        yield Case(Probe(f"{{{{ .reg .b{kind[1:]} x; {steps}; }}}}", kind, (kind,) * 4))


CHAIN = (
    "{{ .reg .b32 l, h, x, y, u, v; mov.b64 {{l, h}}, {a}; mov.b64 {{x, y}}, {b}; "
    "%s; mov.b64 {d}, {{u, v}}; }}"
)


def reals(kind: str) -> Iterator[Case]:
    for mode in ROUNDINGS:
        yield from same((f"{name}.{mode}" for name in ("add", "sub", "mul", "div")), kind, 2)
        yield from same((f"fma.{mode}",), kind, 3)
        yield from same((f"sqrt.{mode}", f"rcp.{mode}"), kind, 1)
    yield from same(("min", "max", "copysign"), kind, 2)
    yield from same(("neg", "abs"), kind, 1)
    for name in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
        yield simple(f"testp.{name}.{kind}", "pred", kind)
    yield from relations("eq ne lt le gt ge equ neu ltu leu gtu geu num nan", kind)


def real_cases() -> Iterator[Case]:
    yield from reals("f32")
    yield from reals("f64")
    two = ["add.ftz", "sub.ftz", "mul.ftz", "div.rn.ftz", "add.sat", "mul.sat"]
    for how in ("ftz", "NaN", "xorsign.abs", "NaN.xorsign.abs"):
        two += [f"min.{how}", f"max.{how}"]
    yield from same(two, "f32", 2)
    yield from same(("fma.rn.ftz", "fma.rn.sat", "fma.rn.ftz.sat"), "f32", 3)
    yield from same(("sqrt.rn.ftz", "rcp.rn.ftz", "neg.ftz", "abs.ftz"), "f32", 1)
    yield from relations("eq.ftz lt.ftz geu.ftz", "f32")
    for relation, kind in itertools.product(("eq", "lt", "geu"), ("u32", "f32")):
        yield simple(f"set.{relation}.{kind}.f32", kind, "f32", "f32")


def approximate_cases() -> Iterator[Case]:
    """Bounds as in the PTX ISA."""
    for flush in ("", ".ftz"):
        table = [
            (f"ex2.approx{flush}.f32", Bound(ulps=2), (-125.0, 127.0)),
            (f"lg2.approx{flush}.f32", Bound(absolute=2.0**-22), (0.5, 2.0)),
            (f"lg2.approx{flush}.f32", Bound(relative=2.0**-22), (2.0, 1e38)),
            (f"sin.approx{flush}.f32", Bound(absolute=2.0**-20.5), (-math.pi, math.pi)),
            (f"cos.approx{flush}.f32", Bound(absolute=2.0**-20.5), (-math.pi, math.pi)),
            (f"rcp.approx{flush}.f32", Bound(ulps=1), (1e-37, 8e37)),
            (f"sqrt.approx{flush}.f32", Bound(relative=2.0**-22), (1e-37, 3e38)),
            (f"rsqrt.approx{flush}.f32", Bound(relative=2.0**-22.4), (1e-37, 3e38)),
        ]
        for name, bound, within in table:
            yield simple(name, "f32", "f32", bound=bound, within=within)
        for name in ("div.approx", "div.full"):
            two = ("f32", "f32")
            yield simple(f"{name}{flush}.f32", "f32", *two, bound=Bound(ulps=2), within=(1e-18, 1e18))
    yield simple("tanh.approx.f32", "f32", "f32", bound=Bound(relative=2.0**-11), within=(-9.0, 9.0))
    yield simple("rcp.approx.ftz.f64", "f64", "f64", bound=Bound(relative=2.0**-20), within=(1e-300, 1e300))
    yield simple("rsqrt.approx.ftz.f64", "f64", "f64", bound=Bound(relative=2.0**-20), within=(1e-300, 1e300))
    yield simple("rsqrt.approx.f64", "f64", "f64", bound=Bound(ulps=1), within=(1e-300, 1e300))
    yield simple("ex2.approx.f16", "f16", "f16", bound=Bound(relative=2.0**-9.9), within=(-13.0, 15.0))
    yield simple("tanh.approx.f16", "f16", "f16", bound=Bound(absolute=2.0**-10.9), within=(-4.0, 4.0))
    yield simple("ex2.approx.ftz.bf16", "bf16", "bf16", bound=Bound(relative=2.0**-7), within=(-100.0, 100.0))
    yield simple("tanh.approx.bf16", "bf16", "bf16", bound=Bound(absolute=2.0**-8), within=(-4.0, 4.0))


def half_cases() -> Iterator[Case]:
    for kind in HALVES:
        for each in (kind, f"{kind}x2"):
            yield from same(("add", "sub", "mul", "min", "max", "min.NaN", "max.NaN"), each, 2)
            yield from same(("fma.rn", "fma.rn.relu"), each, 3)
        yield from same(("neg", "abs"), kind, 1)
        yield from relations("eq lt ge neu nan", kind)
    yield from same(("add.sat", "mul.sat", "add.ftz", "mul.ftz"), "f16", 2)
    yield from same(("fma.rn.sat", "fma.rn.ftz"), "f16", 3)


# Operands whose exact result is a hair under the smallest normal number: rounded to 24 bits it is that number
# or is not, and rounded to the steps of denormals it is or is not. What .ftz makes of it tells when the
# hardware decides that a result is denormal.
_PRODUCTS = {
    "f32": (
        (0x00800001, 0x3F7FFFFE),
        (0x00800000, 0x3F7FFFFF),
        (0x00800003, 0x3F7FFFFA),
        (0x00800001, 0x3F7FFFFD),
    ),
    "f16": ((0x0401, 0x3BFE), (0x0400, 0x3BFF), (0x0403, 0x3BFA), (0x0401, 0x3BFD)),
}
_QUOTIENTS = (
    (0x00FFFFFF, 0x40000000),
    (0x00800000, 0x3F800001),
    (0x00FFFFFE, 0x40000000),
    (0x00BFFFFF, 0x3FC00000),
)
_DOUBLES = ((0x380FFFFFFFFFFFFF,), (0x380FFFFFF0000000,), (0x380FFFFFE0000000,), (0x380FFFFFD0000000,))


def flushed_cases() -> Iterator[Case]:
    """What .ftz flushes: the denormal before or after rounding."""
    for mode in ROUNDINGS:
        yield from same((f"mul.{mode}.ftz",), "f32", 2, tiny=_PRODUCTS["f32"])
        yield from same((f"fma.{mode}.ftz",), "f32", 3, tiny=_sums("f32"))
        yield from same((f"div.{mode}.ftz",), "f32", 2, tiny=_QUOTIENTS)
        yield simple(f"cvt.{mode}.ftz.f32.f64", "f32", "f64", tiny=_DOUBLES)
    yield from same(("mul.ftz",), "f16", 2, tiny=_PRODUCTS["f16"])
    yield from same(("fma.rn.ftz",), "f16", 3, tiny=_sums("f16"))


def _sums(kind: str) -> tuple[tuple[int, ...], ...]:
    """The products with nothing added."""
    return tuple((*product, 0) for product in _PRODUCTS[kind])


def conversions_between_integers() -> Iterator[Case]:
    for to, source in itertools.permutations(INTEGERS, 2):
        yield simple(f"cvt.{to}.{source}", to, source)
        width, from_width = int(to[1:]), int(source[1:])
        holds_all = width > from_width and (to[0] == "s" or source[0] == "u")
        if not holds_all:  # else there is nothing to saturate, and PTX has no such instruction
            yield simple(f"cvt.sat.{to}.{source}", to, source)


def conversions_of_integers() -> Iterator[Case]:
    for kind in INTEGERS:
        for real, mode in itertools.product(("f32", "f64"), ROUNDINGS):
            yield simple(f"cvt.{mode}.{real}.{kind}", real, kind)
            yield simple(f"cvt.{mode}i.{kind}.{real}", kind, real)
        for mode in ROUNDINGS:
            yield simple(f"cvt.{mode}.f16.{kind}", "f16", kind)
        yield simple(f"cvt.rzi.{kind}.f16", kind, "f16")


def conversions_of_reals() -> Iterator[Case]:
    for mode in ROUNDINGS:
        yield simple(f"cvt.{mode}.f32.f64", "f32", "f64")
        yield simple(f"cvt.{mode}.f16.f32", "f16", "f32")
        for real in ("f16", "f32", "f64"):
            yield simple(f"cvt.{mode}i.{real}.{real}", real, real)
    yield simple("cvt.f64.f32", "f64", "f32")
    yield simple("cvt.ftz.f64.f32", "f64", "f32")
    yield simple("cvt.sat.f32.f32", "f32", "f32")
    yield simple("cvt.rna.tf32.f32", "tf32", "f32")
    yield simple("cvt.rn.bf16.f32", "bf16", "f32")
    yield simple("cvt.rz.bf16.f32", "bf16", "f32")
    for kind in HALVES:
        for mode in ("rn", "rz"):
            yield simple(f"cvt.{mode}.relu.{kind}.f32", kind, "f32")
            yield simple(f"cvt.{mode}.{kind}x2.f32", f"{kind}x2", "f32", "f32")
        yield simple(f"cvt.f32.{kind}", "f32", kind)
    yield simple("cvt.rn.f16.f64", "f16", "f64")
    yield simple("cvt.f64.f16", "f64", "f16")


def collective_cases() -> Iterator[Case]:
    for mode in ("up", "down", "bfly", "idx"):
        clamp = "0" if mode == "up" else "31"
        text = f"shfl.sync.{mode}.b32 {{d}}, {{a}}, {{b}}, {clamp}, -1"
        yield Case(Probe(text, "b32", ("b32", "b32")), shifts=(1,))
        yield Case(
            Probe(
                f"shfl.sync.{mode}.b32 {{d}}, {{a}}, {{b}}, {int(clamp) | 0x1800}, -1", "b32", ("b32", "b32")
            ),
            shifts=(1,),
        )
    for kind in ("b32", "b64"):
        yield Case(Probe(f"match.any.sync.{kind} {{d}}, {{a}}, -1", "b32", (kind,)))
        yield Case(Probe(f"match.all.sync.{kind} {{d}}, {{a}}, -1", "b32", (kind,)))
    for name in (
        "add.u32",
        "add.s32",
        "min.u32",
        "max.u32",
        "min.s32",
        "max.s32",
        "and.b32",
        "or.b32",
        "xor.b32",
    ):
        yield Case(Probe(f"redux.sync.{name} {{d}}, {{a}}, -1", "b32", ("b32",)))
    yield Case(
        Probe("{{ .reg .pred x; setp.gt.s32 x, {a}, 0; vote.sync.ballot.b32 {d}, x, -1; }}", "b32", ("b32",))
    )


def cases() -> list[Case]:
    """All of them; every name once."""
    families = (
        integer_cases,
        bit_cases,
        real_cases,
        approximate_cases,
        half_cases,
        flushed_cases,
        conversions_between_integers,
        conversions_of_integers,
        conversions_of_reals,
        collective_cases,
    )
    return [case for family in families for case in family()]
