"""Integer instructions of every width against Python's integers, on edge values."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from instructions import STORED, Probe, pairs, run

if TYPE_CHECKING:
    from collections.abc import Callable

BITS = {"u16": 16, "s16": 16, "u32": 32, "s32": 32, "u64": 64, "s64": 64, "b16": 16, "b32": 32, "b64": 64}


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def wrap(value: int, kind: str) -> int:
    return signed(value, BITS[kind]) if kind[0] == "s" else value & ((1 << BITS[kind]) - 1)


def edges(kind: str) -> np.ndarray:
    bits = BITS[kind]
    values = {
        0,
        1,
        2,
        3,
        7,
        31,
        32,
        33,
        100,
        (1 << bits) - 1,
        (1 << bits) - 2,
        1 << (bits - 1),
        (1 << (bits - 1)) - 1,
    }
    values |= {
        0x5A5A5A5A5A5A5A5A & ((1 << bits) - 1),
        0x123456789ABCDEF0 & ((1 << bits) - 1),
        1 << (bits // 2),
    }
    return np.array(sorted(wrap(v, kind) for v in values), STORED[kind])


def check(text: str, kinds: tuple[str, ...], oracle: Callable[..., int], result: str | None = None) -> tuple:
    return text, kinds, oracle, result or kinds[0]


def verify(table: list[tuple]) -> None:
    probes, inputs = [], []
    for text, kinds, _, result in table:
        columns = pairs(edges(kinds[0])) if len(kinds) > 1 else (edges(kinds[0]),)
        arrays = [columns[0]]
        for position, kind in enumerate(kinds[1:]):
            if kind == kinds[0]:
                arrays.append(np.roll(columns[1], 5 * position))
            else:
                small = np.arange(len(columns[0])) * (7 + 4 * position) % 70
                arrays.append(small.astype(STORED[kind]))
        probes.append(Probe(text, result, kinds))
        inputs.append(tuple(arrays))
    for (text, _, oracle, result), arrays, got in zip(table, inputs, run(probes, inputs), strict=True):
        kind = "u32" if result == "pred" else result
        for row, value in zip(zip(*(a.tolist() for a in arrays), strict=True), got.tolist(), strict=True):
            assert wrap(value, kind) == wrap(int(oracle(*row)), kind), f"{text} of {row}"


def quotient(a: int, b: int) -> int:
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int:
    return a if b == 0 else a - b * quotient(a, b)


def test_arithmetic_of_every_width() -> None:
    table = []
    for kind in ("u16", "s16", "u32", "s32", "u64", "s64"):
        bits, two, three = BITS[kind], (kind, kind), (kind, kind, kind)
        table += [
            check(f"add.{kind} {{d}}, {{a}}, {{b}}", two, lambda a, b: a + b),
            check(f"sub.{kind} {{d}}, {{a}}, {{b}}", two, lambda a, b: a - b),
            check(f"mul.lo.{kind} {{d}}, {{a}}, {{b}}", two, lambda a, b: a * b),
            check(f"mul.hi.{kind} {{d}}, {{a}}, {{b}}", two, lambda a, b, bits=bits: (a * b) >> bits),
            check(f"mad.lo.{kind} {{d}}, {{a}}, {{b}}, {{c}}", three, lambda a, b, c: a * b + c),
            check(
                f"mad.hi.{kind} {{d}}, {{a}}, {{b}}, {{c}}",
                three,
                lambda a, b, c, bits=bits: ((a * b) >> bits) + c,
            ),
            check(f"div.{kind} {{d}}, {{a}}, {{b}}", two, quotient),
            check(f"rem.{kind} {{d}}, {{a}}, {{b}}", two, remainder),
            check(f"min.{kind} {{d}}, {{a}}, {{b}}", two, min),
            check(f"max.{kind} {{d}}, {{a}}, {{b}}", two, max),
            check(f"sad.{kind} {{d}}, {{a}}, {{b}}, {{c}}", three, lambda a, b, c: c + abs(a - b)),
        ]
        if bits < 64:
            wide = f"{kind[0]}{2 * bits}"
            table.append(check(f"mul.wide.{kind} {{d}}, {{a}}, {{b}}", two, lambda a, b: a * b, wide))
        if kind[0] == "s":
            table += [
                check(f"abs.{kind} {{d}}, {{a}}", (kind,), abs),
                check(f"neg.{kind} {{d}}, {{a}}", (kind,), lambda a: -a),
            ]
    top, bottom = (1 << 31) - 1, -(1 << 31)
    table.append(
        check("add.sat.s32 {d}, {a}, {b}", ("s32", "s32"), lambda a, b: max(bottom, min(top, a + b)))
    )
    verify(table)


def test_logic_and_shifts() -> None:
    table = []
    for bits in (16, 32, 64):
        kind, ones = f"b{bits}", (1 << bits) - 1
        table += [
            check(f"and.b{bits} {{d}}, {{a}}, {{b}}", (kind, kind), lambda a, b: a & b),
            check(f"or.b{bits} {{d}}, {{a}}, {{b}}", (kind, kind), lambda a, b: a | b),
            check(f"xor.b{bits} {{d}}, {{a}}, {{b}}", (kind, kind), lambda a, b: a ^ b),
            check(f"not.b{bits} {{d}}, {{a}}", (kind,), lambda a: ~a),
            check(f"cnot.b{bits} {{d}}, {{a}}", (kind,), lambda a: a == 0),
            check(
                f"shl.b{bits} {{d}}, {{a}}, {{b}}",
                (kind, "u32") if bits != 32 else (kind, "b32"),
                lambda a, n: a << min(n, 64),
            ),
            check(
                f"shr.u{bits} {{d}}, {{a}}, {{b}}",
                (kind, "u32") if bits != 32 else (kind, "b32"),
                lambda a, n: a >> min(n, 64),
            ),
            check(f"shr.s{bits} {{d}}, {{a}}, {{b}}", (f"s{bits}", "u32"), lambda a, n: a >> min(n, 64)),
        ]
        if bits > 16:
            table += [
                check(f"popc.b{bits} {{d}}, {{a}}", (kind,), lambda a: a.bit_count(), "u32"),
                check(
                    f"clz.b{bits} {{d}}, {{a}}", (kind,), lambda a, bits=bits: bits - a.bit_length(), "u32"
                ),
                check(
                    f"brev.b{bits} {{d}}, {{a}}", (kind,), lambda a, bits=bits: int(f"{a:0{bits}b}"[::-1], 2)
                ),
                check(f"bfind.u{bits} {{d}}, {{a}}", (kind,), lambda a: a.bit_length() - 1, "u32"),
                check(
                    f"bfind.s{bits} {{d}}, {{a}}",
                    (f"s{bits}",),
                    lambda a: (~a if a < 0 else a).bit_length() - 1,
                    "u32",
                ),
                check(
                    f"bfe.u{bits} {{d}}, {{a}}, {{b}}, {{c}}",
                    (kind, "u32" if bits != 32 else "s32", "u32" if bits != 32 else "s32"),
                    lambda a, at, n: a >> at & ((1 << n) - 1),
                ),
                check(
                    f"bfe.s{bits} {{d}}, {{a}}, {{b}}, {{c}}",
                    (f"s{bits}", "u32", "u32"),
                    lambda a, at, n, bits=bits: field(a, at, n, bits),
                ),
                check(
                    f"bfi.b{bits} {{d}}, {{a}}, {{b}}, {{c}}, {{e}}",
                    (kind, kind, "s32", "s32"),
                    lambda a, b, at, n, ones=ones: (
                        b & ~(((1 << n) - 1) << at) | (a & ((1 << n) - 1)) << at & ones
                    ),
                ),
            ]
    verify(table)


def field(a: int, at: int, n: int, bits: int) -> int:
    """bfe of a signed type: bits beyond the top are the sign of the field."""
    if n == 0:
        return 0
    sign = a >> min(at + n - 1, bits - 1) & 1
    kept = [(a >> at + k & 1) if at + k < bits else sign for k in range(min(n, bits))]
    value = sum(bit << k for k, bit in enumerate(kept))
    return value | (-1 << len(kept) if sign else 0)


def permuted(a: int, b: int, c: int) -> int:
    both = (b << 32 | a).to_bytes(8, "little")
    result = 0
    for n in range(4):
        selector = c >> 4 * n & 15
        byte = both[selector & 7]
        result |= ((0xFF if byte & 0x80 else 0) if selector & 8 else byte) << 8 * n
    return result


def dot(a: int, b: int, c: int, a_signed: bool, b_signed: bool) -> int:
    parts = [
        (signed(a >> s & 0xFF, 8) if a_signed else a >> s & 0xFF)
        * (signed(b >> s & 0xFF, 8) if b_signed else b >> s & 0xFF)
        for s in (0, 8, 16, 24)
    ]
    return c + sum(parts)


def test_permutations_and_dot_products() -> None:
    three = ("u32", "u32", "u32")
    table = [
        check("prmt.b32 {d}, {a}, {b}, {c}", three, permuted),
        check("shf.l.wrap.b32 {d}, {a}, {b}, {c}", three, lambda a, b, n: (b << 32 | a) << (n & 31) >> 32),
        check("shf.r.wrap.b32 {d}, {a}, {b}, {c}", three, lambda a, b, n: (b << 32 | a) >> (n & 31)),
        check("shf.l.clamp.b32 {d}, {a}, {b}, {c}", three, lambda a, b, n: (b << 32 | a) << min(n, 32) >> 32),
        check("shf.r.clamp.b32 {d}, {a}, {b}, {c}", three, lambda a, b, n: (b << 32 | a) >> min(n, 32)),
        check("dp4a.u32.u32 {d}, {a}, {b}, {c}", three, lambda a, b, c: dot(a, b, c, False, False)),
        check("dp4a.s32.u32 {d}, {a}, {b}, {c}", three, lambda a, b, c: dot(a, b, c, True, False)),
        check("dp4a.s32.s32 {d}, {a}, {b}, {c}", three, lambda a, b, c: dot(a, b, c, True, True)),
    ]
    table += [
        check(f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {code}", three, partial(looked_up, code))
        for code in (0x96, 0xE8, 0x1B, 0xC0, 0x01)
    ]
    verify(table)


def apart(a: int, b: int, c: int, bits: int, summed: bool) -> int:
    """vabsdiff: the differences of the parts of two registers, or their sum and c."""
    ones = (1 << bits) - 1
    parts = [abs((a >> s & ones) - (b >> s & ones)) for s in range(0, 32, bits)]
    return c + sum(parts) if summed else sum(part << n * bits for n, part in enumerate(parts))


def test_differences_of_parts() -> None:
    three = ("u32", "u32", "u32")
    verify(
        [
            check(
                f"vabsdiff{32 // bits}.u32.u32.u32{'.add' * summed} {{d}}, {{a}}, {{b}}, {{c}}",
                three,
                partial(apart, bits=bits, summed=summed),
            )
            for bits in (8, 16)
            for summed in (False, True)
        ]
    )


def looked_up(code: int, a: int, b: int, c: int) -> int:
    return sum((code >> ((a >> n & 1) << 2 | (b >> n & 1) << 1 | (c >> n & 1)) & 1) << n for n in range(32))


def test_carry_runs_through_a_chain() -> None:
    chain = (
        "{{ .reg .b32 l, h, x, y, u, v; mov.b64 {{l, h}}, {a}; mov.b64 {{x, y}}, {b}; "
        "%s; mov.b64 {d}, {{u, v}}; }}"
    )
    table = [
        check(chain % "add.cc.u32 u, l, x; addc.u32 v, h, y", ("u64", "u64"), lambda a, b: a + b),
        check(chain % "sub.cc.u32 u, l, x; subc.u32 v, h, y", ("u64", "u64"), lambda a, b: a - b),
        check(
            chain
            % "mul.lo.u32 u, l, x; mul.hi.u32 v, l, x; mad.lo.cc.u32 u, l, 1, u; madc.hi.u32 v, h, 0, v",
            ("u64", "u64"),
            lambda a, b: (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF) + (a & 0xFFFFFFFF),
        ),
    ]
    verify(table)


def test_comparisons() -> None:
    relations = {
        "eq": lambda a, b: a == b,
        "ne": lambda a, b: a != b,
        "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b,
        "gt": lambda a, b: a > b,
        "ge": lambda a, b: a >= b,
    }
    table = [
        check(f"setp.{name}.{kind} {{d}}, {{a}}, {{b}}", (kind, kind), relation, "pred")
        for kind in ("u16", "s16", "u32", "s32", "u64", "s64")
        for name, relation in relations.items()
    ]
    verify(table)


def test_conversions_between_widths() -> None:
    table = []
    for source in ("u16", "s16", "u32", "s32", "u64", "s64"):
        for target in ("u16", "s16", "u32", "s32", "u64", "s64"):
            table.append(check(f"cvt.{target}.{source} {{d}}, {{a}}", (source,), lambda a: a, target))
            low = -(1 << (BITS[target] - 1)) if target[0] == "s" else 0
            high = (1 << (BITS[target] - (target[0] == "s"))) - 1
            clamp = lambda a, low=low, high=high: max(low, min(high, a))  # noqa: E731
            table.append(check(f"cvt.sat.{target}.{source} {{d}}, {{a}}", (source,), clamp, target))
        table.append(check("cvt.s32.s8 {d}, {a}", (source,), lambda a: signed(a, 8), "s32"))
        table.append(check("cvt.u32.u8 {d}, {a}", (source,), lambda a: a & 0xFF, "u32"))
    verify(table)
