"""What instructions on registers compute: integers by Python's, reals in exact arithmetic.

A model is made from the name alone, by what the PTX ISA says of opcode, modifiers and types.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from typing import TYPE_CHECKING

from exact import FORMATS, NAN, ieee, pattern, root, value
from instructions import Probe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INTEGERS = {f"{sign}{bits}": bits for sign in "usb" for bits in (8, 16, 32, 64)}
PAIRS = {"f16x2": "f16", "bf16x2": "bf16", "u16x2": "u16", "s16x2": "s16"}
TYPES = {*INTEGERS, *FORMATS, *PAIRS, "tf32", "pred"}
RELATIONS = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
COMBINATIONS = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
BOTH_BITS = "{{ .reg .pred x, y; setp.gt.s32 x, {a}, 0; setp.gt.s32 y, {b}, 0; %s; }}"


@dataclass(frozen=True)
class Mnemonic:
    """Opcode, modifiers and types."""

    name: str

    @cached_property
    def words(self) -> list[str]:
        return self.name.split(".")

    @cached_property
    def types(self) -> list[str]:
        return [word for word in self.words if word in TYPES]


@dataclass(frozen=True)
class Model:
    """An instruction, and the bits of its result for the bits of its operands."""

    probe: Probe
    compute: Callable[..., int]


def models(name: str) -> list[Model]:
    """Those of the instruction of that name; none if it is no plain one on registers."""
    m = Mnemonic(name)
    maker = MAKERS.get(m.words[0])
    return list(maker(m)) if maker else []


def number(bits: int, kind: str) -> int:
    """The integer that the low bits of a register stand for."""
    width = INTEGERS[kind]
    bits &= (1 << width) - 1
    return bits - (1 << width) if kind[0] == "s" and bits >> width - 1 else bits


def clamped(n: int, kind: str) -> int:
    width = INTEGERS[kind]
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if kind[0] == "s" else (0, (1 << width) - 1)
    return max(low, min(high, n))


def register(kind: str) -> str:
    """The type whose register holds it: bytes stand in 32 bits."""
    return "u32" if kind in {"u8", "s8", "b8"} else kind


def plain(name: str, result: str, kinds: tuple[str, ...], compute: Callable[..., int]) -> Model:
    """``name d, a, b, …``"""
    text = f"{name} {{d}}" + "".join(f", {{{x}}}" for x, _ in zip("abce", kinds, strict=False))
    return Model(Probe(text, result, kinds), compute)


def halves(compute: Callable[..., int]) -> Callable[..., int]:
    """For both halves of a register."""
    return lambda *operands: sum(
        (compute(*(o >> s & 0xFFFF for o in operands)) & 0xFFFF) << s for s in (0, 16)
    )


def alike(kind: str, got: int, expected: int) -> bool:
    """Whether bits are the same; one NaN is as good as another."""
    if kind in PAIRS and PAIRS[kind] in FORMATS:
        return all(alike(PAIRS[kind], got >> s & 0xFFFF, expected >> s & 0xFFFF) for s in (0, 16))
    if kind in FORMATS and math.isnan(value(expected, kind)):
        return math.isnan(value(got, kind))
    return got == expected


# Integers -------------------------------------------------------------------------------------------------


def quotient(a: int, b: int) -> int:
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def low24(n: int, kind: str) -> int:
    n &= 0xFFFFFF
    return n - (1 << 24) if kind[0] == "s" and n >> 23 else n


def integer(m: Mnemonic) -> Iterator[Model]:
    kind = m.types[-1]
    if kind in PAIRS:
        (half,) = integer(Mnemonic(f"{m.words[0]}.{PAIRS[kind]}"))
        yield plain(m.name, kind, (kind, kind), halves(half.compute))
        return
    bits = INTEGERS[kind]
    wide = f"{kind[0]}{2 * bits}"
    table: dict[str, Callable[..., int]] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul.lo": lambda a, b: a * b,
        "mul.hi": lambda a, b: a * b >> bits,
        "mul.wide": lambda a, b: a * b,
        "mad.lo": lambda a, b, c: a * b + c,
        "mad.hi": lambda a, b, c: (a * b >> bits) + c,
        "mad.wide": lambda a, b, c: a * b + c,
        "mul24.lo": lambda a, b: low24(a, kind) * low24(b, kind),
        "mul24.hi": lambda a, b: low24(a, kind) * low24(b, kind) >> 16,
        "mad24.lo": lambda a, b, c: low24(a, kind) * low24(b, kind) + c,
        "div": quotient,
        "rem": lambda a, b: a if b == 0 else a - b * quotient(a, b),
        "min": min,
        "max": max,
        "sad": lambda a, b, c: abs(a - b) + c,
        "abs": abs,
        "neg": operator.neg,
        "add.sat": lambda a, b: clamped(a + b, kind),
        "sub.sat": lambda a, b: clamped(a - b, kind),
        "mad.hi.sat": lambda a, b, c: clamped((a * b >> bits) + c, kind),
    }
    operation = ".".join(m.words[:-1])
    count = {"abs": 1, "neg": 1}.get(operation, 3 if m.words[0] in {"mad", "mad24", "sad"} else 2)
    kinds = [kind] * count
    if "wide" in m.words and count == 3:
        kinds[2] = wide
    f = table[operation]
    yield plain(
        m.name,
        wide if "wide" in m.words else kind,
        tuple(kinds),
        lambda *o: f(*(number(x, k) for x, k in zip(o, kinds, strict=True))),
    )


def carried(m: Mnemonic) -> Iterator[Model]:
    """add.cc and its like, behind an addition and a subtraction, with the flag read by either.

    The flag is what is carried. A subtraction adds the complement: its flag says that nothing was borrowed.
    """
    kind = m.types[0]
    bits = INTEGERS[kind]
    ones = (1 << bits) - 1
    takes, gives, subtracts = m.words[0].endswith("c"), "cc" in m.words, m.words[0].startswith("sub")
    three = m.words[0] in {"mad", "madc"}

    def result(a: int, b: int, c: int, flag: int) -> int:
        """With the carry in the bit above."""
        if subtracts:
            return a + (b ^ ones) + (flag if takes else 1)
        if three:
            exact = number(a, kind) * number(b, kind)
            a, b = (exact if "lo" in m.words else exact >> bits) & ones, c
        return a + b + (flag if takes else 0)

    # The flag behind a setter is 1 where e is zero and it subtracts, or e is not zero and it adds.
    setters = ["add.cc.u{} x, {{e}}, -1; ", "sub.cc.u{} x, 0, {{e}}; "] if takes else [""]
    readers = ["", "; addc.u{} {{d}}, 0, 0", "; subc.u{} {{d}}, 0, 0"] if gives else [""]
    operands = "{a}, {b}, {c}" if three else "{a}, {b}"
    for setter, reader in product(setters, readers):
        steps = setter.format(bits) + f"{m.name} {'x' if reader else '{d}'}, {operands}" + reader.format(bits)

        def compute(a: int, b: int, c: int, e: int, setter: str = setter, reader: str = reader) -> int:
            got = result(a, b, c, int((e != 0) == setter.startswith("add")))
            if not reader:
                return got
            return (got >> bits) - ("subc" in reader)

        yield Model(Probe(f"{{{{ .reg .b{bits} x; {steps}; }}}}", kind, (kind,) * 4), compute)


# Bits -----------------------------------------------------------------------------------------------------


def logic(m: Mnemonic) -> Iterator[Model]:
    f = {**COMBINATIONS, "not": operator.invert}[m.words[0]]
    kinds = (m.types[0],) * (1 if m.words[0] == "not" else 2)
    if m.types[0] == "pred":
        text = BOTH_BITS % f"{m.name} {{d}}, x{', y' * (len(kinds) - 1)}"
        yield Model(
            Probe(text, "pred", ("s32", "s32")),
            lambda *o: f(*(number(x, "s32") > 0 for x in o[: len(kinds)])) & 1,
        )
        return
    yield plain(m.name, m.types[0], kinds, f)


def shifted_right(m: Mnemonic) -> Iterator[Model]:
    kind = m.types[0]
    yield plain(m.name, kind, (kind, "u32"), lambda a, n: number(a, kind) >> min(n, INTEGERS[kind]))


def top_bit(m: Mnemonic) -> Iterator[Model]:
    kind = m.types[0]

    def compute(a: int) -> int:
        n = number(a, kind)
        place = (~n if n < 0 else n).bit_length() - 1
        return place if place < 0 or "shiftamt" not in m.words else INTEGERS[kind] - 1 - place

    yield plain(m.name, "u32", (kind,), compute)


def ones(m: Mnemonic) -> Iterator[Model]:
    def compute(a: int, b: int) -> int:
        first, count = (x % 32 if m.words[1] == "wrap" else min(x, 32) for x in (a, b))
        return (1 << count) - 1 << first

    yield plain(m.name, "b32", ("b32", "b32"), compute)


def nth_bit(m: Mnemonic) -> Iterator[Model]:
    def compute(mask: int, base: int, offset: int) -> int:
        step, n = number(offset, "s32"), base & 31
        if step == 0:
            return n if mask >> n & 1 else -1
        places = range(n, 32) if step > 0 else range(n, -1, -1)
        found = [place for place in places if mask >> place & 1]
        return found[abs(step) - 1] if abs(step) <= len(found) else -1

    text = f"{{{{ .reg .u32 x; and.b32 x, {{b}}, 31; {m.name} {{d}}, {{a}}, x, {{c}}; }}}}"
    yield Model(Probe(text, "b32", ("b32", "b32", "s32")), compute)


def permuted(m: Mnemonic) -> Iterator[Model]:
    chosen: dict[str, Callable[[int, int], int]] = {
        "f4e": lambda s, n: s + n,
        "b4e": lambda s, n: (s - n) % 8,
        "rc8": lambda s, _: s,
        "ecl": max,
        "ecr": min,
        "rc16": lambda s, n: 2 * (s & 1) + (n & 1),
    }

    def compute(a: int, b: int, c: int) -> int:
        result = 0
        for n in range(4):
            selector = chosen[m.words[2]](c & 3, n) if len(m.words) > 2 else c >> 4 * n & 15
            byte = (b << 32 | a) >> 8 * (selector & 7) & 0xFF
            result |= (byte if selector < 8 else 0xFF * (byte >> 7)) << 8 * n
        return result

    yield plain(m.name, "b32", ("b32",) * 3, compute)


def dot(m: Mnemonic) -> Iterator[Model]:
    signs = [kind[0] for kind in m.types]

    def compute(a: int, b: int, c: int) -> int:
        if m.words[0] == "dp4a":
            return c + sum(
                number(a >> s, f"{signs[0]}8") * number(b >> s, f"{signs[1]}8") for s in (0, 8, 16, 24)
            )
        at = 16 if "hi" in m.words else 0
        parts = (
            number(a >> 16 * n, f"{signs[0]}16") * number(b >> at + 8 * n, f"{signs[1]}8") for n in (0, 1)
        )
        return c + sum(parts)

    yield plain(m.name, "b32", ("b32",) * 3, compute)


def moved(m: Mnemonic) -> Iterator[Model]:
    kind = m.types[0]
    if kind == "pred":
        yield Model(
            Probe(BOTH_BITS % "mov.pred {d}, x", "pred", ("s32", "s32")), lambda a, _: number(a, "s32") > 0
        )
    elif kind != "b8":  # which PTX does not have
        yield plain(m.name, kind, (kind,), lambda a: a)


def repacked(m: Mnemonic) -> Iterator[Model]:
    """pack and unpack: the parts of a register in reverse order."""
    whole, part = m.types
    bits, size = INTEGERS[whole], INTEGERS[part]
    parts = [f"x{n}" for n in range(bits // size)]
    text = f"{{{{ .reg .{part} {', '.join(parts)}; mov.{whole} {{{{{', '.join(parts)}}}}}, {{a}}; "
    text += f"mov.{whole} {{d}}, {{{{{', '.join(reversed(parts))}}}}}; }}}}"

    def compute(a: int) -> int:
        return sum((a >> n & (1 << size) - 1) << bits - size - n for n in range(0, bits, size))

    yield Model(Probe(text, whole, (whole,)), compute)


# Reals ----------------------------------------------------------------------------------------------------


def rounding(words: list[str]) -> str:
    return next((mode for mode in ("rz", "rm", "rp") if mode in words), "rn")


def extremum(words: list[str]) -> Callable[[float, float], float]:
    chosen = min if words[0] == "min" else max

    def compute(a: float, b: float) -> float:
        sign = math.copysign(1, a) * math.copysign(1, b)
        if "xorsign" in words:
            a, b = abs(a), abs(b)
        if math.isnan(a) or math.isnan(b):
            result = (
                math.nan if "NaN" in words or math.isnan(a) == math.isnan(b) else b if math.isnan(a) else a
            )
        else:
            result = chosen(a, b, key=lambda x: (x, math.copysign(1, x)))
        return math.copysign(result, sign) if "xorsign" in words and not math.isnan(result) else result

    return compute


def finished(x: float, words: list[str], kind: str) -> int:
    """The bits after .sat and .relu."""
    if "sat" in words:
        x = 0.0 if math.isnan(x) or x <= 0 else min(x, 1.0)
    if "relu" in words and not math.isnan(x) and math.copysign(1, x) < 0:
        x = 0.0
    return pattern(x, kind)


def real(m: Mnemonic) -> Iterator[Model]:
    kind = m.types[-1]
    if "approx" in m.words or "full" in m.words:
        return
    if kind in PAIRS:
        (half,) = real(Mnemonic(m.name.removesuffix("x2")))
        yield plain(
            half.probe.text.split()[0] + "x2", kind, (kind,) * len(half.probe.operands), halves(half.compute)
        )
        return
    mode, ftz = rounding(m.words), "ftz" in m.words
    rounded = partial(ieee, mode=mode, kind=kind, flushed=ftz)
    divide = rounded("div")
    table: dict[str, tuple[int, Callable[..., float]]] = {
        **{operation: (2, rounded(operation)) for operation in ("add", "sub", "mul", "div")},
        **dict.fromkeys(("fma", "mad"), (3, rounded("fma"))),
        **dict.fromkeys(("min", "max"), (2, extremum(m.words))),
        "rcp": (1, lambda x: divide(1.0, x)),
        "sqrt": (1, lambda x: root(x, mode, kind)),
        "neg": (1, operator.neg),
        "abs": (1, abs),
        "copysign": (2, lambda a, b: math.copysign(b, a)),
    }
    count, f = table[m.words[0]]

    def compute(*operands: int) -> int:
        values = [value(bits, kind) for bits in operands]
        if ftz:
            values = [FORMATS[kind].flushed(x) for x in values]
        return finished(f(*values), m.words, kind)

    if m.words[0] in {"fma", "mad", "div", "rcp", "sqrt"} and mode == "rn":
        yield plain(m.name.replace(m.words[0], f"{m.words[0]}.rn", 1), kind, (kind,) * count, compute)
    else:
        yield plain(m.name, kind, (kind,) * count, compute)


def arithmetic(m: Mnemonic) -> Iterator[Model]:
    if "cc" in m.words or m.words[0] in {"addc", "subc", "madc"}:
        return carried(m)
    return (integer if PAIRS.get(m.types[-1], m.types[-1]) in INTEGERS else real)(m)


def classified(m: Mnemonic) -> Iterator[Model]:
    kind = m.types[0]
    smallest = 2.0 ** FORMATS[kind].bottom
    test: Callable[[float], bool] = {
        "finite": math.isfinite,
        "infinite": math.isinf,
        "number": lambda x: not math.isnan(x),
        "notanumber": math.isnan,
        "normal": lambda x: x == 0 or smallest <= abs(x) < math.inf,
        "subnormal": lambda x: 0 < abs(x) < smallest,
    }[m.words[1]]
    yield plain(m.name, "pred", (kind,), lambda a: test(value(a, kind)))


# Comparisons ----------------------------------------------------------------------------------------------


def related(relation: str, kind: str, ftz: bool) -> Callable[[int, int], bool]:
    """Whether a relation holds of two operands as stored."""
    if kind in INTEGERS:
        return lambda a, b: RELATIONS[relation](number(a, kind), number(b, kind))

    def compute(a: int, b: int) -> bool:
        x, y = value(a, kind), value(b, kind)
        if ftz:
            x, y = FORMATS[kind].flushed(x), FORMATS[kind].flushed(y)
        if relation in {"num", "nan"} or math.isnan(x) or math.isnan(y):
            unordered = math.isnan(x) or math.isnan(y)
            return (
                unordered
                if relation == "nan"
                else not unordered
                if relation == "num"
                else relation.endswith("u")
            )
        return bool(RELATIONS[relation.removesuffix("u")](x, y))

    return compute


def compared(m: Mnemonic) -> Iterator[Model]:
    """setp: alone, and with another predicate, for both of its results."""
    kind = m.types[-1]
    single = PAIRS.get(kind, kind)
    holds = related(m.words[1], single, "ftz" in m.words)
    low, mask = (lambda a, b: holds(a & 0xFFFF, b & 0xFFFF)) if kind in PAIRS else holds, 0xFFFF
    yield plain(m.name, "pred", (kind, kind), low)
    combination = sorted(COMBINATIONS)[sum(map(ord, m.name)) % 3]
    combined = ".".join([*m.words[:2], combination, *m.words[2:]])
    text = f"{{{{ .reg .pred x, y; setp.gt.s32 x, {{c}}, 0; {combined} %s, {{a}}, {{b}}, x; }}}}"

    def first(a: int, b: int, c: int) -> bool:
        return bool(COMBINATIONS[combination](bool(low(a, b)), number(c, "s32") > 0))

    def second(a: int, b: int, c: int) -> bool:
        other = holds(a >> 16 & mask, b >> 16 & mask) if kind in PAIRS else not low(a, b)
        return bool(COMBINATIONS[combination](bool(other), number(c, "s32") > 0))

    yield Model(Probe(text % "{d}|y", "pred", (kind, kind, "s32")), first)
    yield Model(Probe(text % "y|{d}", "pred", (kind, kind, "s32")), second)


def set_to(m: Mnemonic) -> Iterator[Model]:
    """set: alone, and with another predicate."""
    to, kind = m.types
    single = PAIRS.get(kind, kind)
    holds = related(m.words[1], single, "ftz" in m.words)
    yes = pattern(1.0, PAIRS.get(to, to)) if PAIRS.get(to, to) in FORMATS else -1
    combination = sorted(COMBINATIONS)[sum(map(ord, m.name)) % 3]
    combined = ".".join([*m.words[:2], combination, *m.words[2:]])
    text = f"{{{{ .reg .pred x; setp.gt.s32 x, {{c}}, 0; {combined} {{d}}, {{a}}, {{b}}, x; }}}}"

    def alone(a: int, b: int) -> int:
        return yes if holds(a, b) else 0

    def with_other(a: int, b: int, c: int) -> int:
        return yes if COMBINATIONS[combination](bool(holds(a, b)), number(c, "s32") > 0) else 0

    def both(a: int, b: int, c: int) -> int:
        return halves(lambda x, y: with_other(x, y, c))(a, b)

    yield plain(m.name, to, (kind, kind), halves(alone) if kind in PAIRS else alone)
    yield Model(Probe(text, to, (kind, kind, "s32")), both if kind in PAIRS else with_other)


def selected(m: Mnemonic) -> Iterator[Model]:
    kind = m.types[0]
    if m.words[0] == "selp":
        text = f"{{{{ .reg .pred x; setp.gt.s32 x, {{c}}, 0; {m.name} {{d}}, {{a}}, {{b}}, x; }}}}"
        yield Model(Probe(text, kind, (kind, kind, "s32")), lambda a, b, c: a if number(c, "s32") > 0 else b)
        return
    deciding = m.types[1]
    holds = related("ge", deciding, "ftz" in m.words)
    yield plain(m.name, kind, (kind, kind, deciding), lambda a, b, c: a if holds(c, 0) else b)


# Conversions ----------------------------------------------------------------------------------------------

INTEGRAL = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}


def made_whole(m: Mnemonic, x: float) -> int:
    return next((f(Fraction(x)) for word, f in INTEGRAL.items() if word in m.words))


def read(m: Mnemonic, bits: int) -> float:
    kind = m.types[1]
    x = value(bits, kind)
    return FORMATS[kind].flushed(x) if "ftz" in m.words and kind == "f32" else x


def to_integer(m: Mnemonic, bits: int) -> int:
    """Saturated; NaN is the top bit alone if source or result has 64 bits, and else nothing."""
    to, source = m.types
    x = read(m, bits)
    if math.isnan(x):
        return number(1 << INTEGERS[to] - 1, to) if INTEGERS[to] == 64 or source == "f64" else 0
    return clamped(made_whole(m, x) if math.isfinite(x) else (1 if x > 0 else -1) << 70, to)


def to_real(m: Mnemonic, kind: str, bits: int) -> int:
    rounded = partial(FORMATS[kind].round, mode=rounding(m.words), flushed="ftz" in m.words and kind == "f32")
    if m.types[1] in INTEGERS:
        return finished(rounded(Fraction(number(bits, m.types[1]))), m.words, kind)
    x = read(m, bits)
    if math.isfinite(x):
        exact = made_whole(m, x) if INTEGRAL.keys() & m.words else x
        x = math.copysign(rounded(Fraction(exact)), x)
    return finished(x, m.words, kind)


def to_tf32(bits: int) -> int:
    """Ties away from zero."""
    x = value(bits, "f32")
    return NAN["f32"] if math.isnan(x) else bits + (0x1000 if math.isfinite(x) else 0) & 0xFFFFE000


def converted(m: Mnemonic) -> Iterator[Model]:
    to, source = m.types
    if to == "tf32":
        yield plain(m.name, to, (source,), to_tf32)
    elif to in PAIRS:
        half = partial(to_real, m, PAIRS[to])
        yield plain(m.name, to, (source, source), lambda a, b: half(a) << 16 | half(b))
    elif to in FORMATS:
        yield plain(m.name, to, (register(source),), partial(to_real, m, to))
    elif source in FORMATS:
        yield plain(m.name, register(to), (source,), partial(to_integer, m))
    else:
        narrowed = clamped if "sat" in m.words else number
        yield plain(m.name, register(to), (register(source),), lambda a: narrowed(number(a, source), to))


MAKERS: dict[str, Callable[[Mnemonic], Iterator[Model]]] = {
    **dict.fromkeys(
        [
            "add",
            "sub",
            "mul",
            "mad",
            "div",
            "min",
            "max",
            "neg",
            "abs",
            "fma",
            "rcp",
            "sqrt",
            "addc",
            "subc",
            "madc",
            "copysign",
        ],
        arithmetic,
    ),
    **dict.fromkeys(["rem", "sad", "mul24", "mad24"], integer),
    **dict.fromkeys(["and", "or", "xor", "not"], logic),
    "shr": shifted_right,
    "bfind": top_bit,
    "bmsk": ones,
    "fns": nth_bit,
    "prmt": permuted,
    "dp4a": dot,
    "dp2a": dot,
    "mov": moved,
    "pack": repacked,
    "unpack": repacked,
    "testp": classified,
    "setp": compared,
    "set": set_to,
    "selp": selected,
    "slct": selected,
    "cvt": converted,
}
