"""What random expressions (``expressions.py``) are made of, by families.

Each operation has a definition for the device, mostly one instruction or one intrinsic, and one for the
host: the same C++, or a model from ``expressions.cuh``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNED = ("s8", "s16", "s32", "s64", "s128")
UNSIGNED = ("u8", "u16", "u32", "u64", "u128")
INTEGERS = SIGNED + UNSIGNED
REALS = ("f32", "f64")
HALVES = ("f16", "bf16")
TYPES = ("bool", *INTEGERS, *REALS, *HALVES)
ROUNDINGS = {"rn": "rn", "rz": "rz", "rd": "rm", "ru": "rp"}  # intrinsics' names -> PTX's
CONSTRAINTS = {"u16": "h", "s16": "h", "u32": "r", "s32": "r", "u64": "l", "s64": "l", "f32": "f", "f64": "d"}
PARAMETERS = "abce"


@dataclass(frozen=True)
class Operation:
    """One operation: parameters are named a, b, c and e; ``device`` and ``host`` are statements."""

    family: str
    result: str
    operands: tuple[str, ...]
    device: str
    host: str

    @property
    def has_slots(self) -> bool:
        """Whether it needs two words of memory that are the thread's own."""
        return "SLOT" in self.device

    def definition(self, name: str) -> str:
        parameters = ", ".join(f"{t} {p}" for t, p in zip(self.operands, PARAMETERS, strict=False))
        parameters += ", u64* slots" if self.has_slots else ""
        if self.device == self.host:
            return f"HD {self.result} {name}({parameters}) {{ {self.host} }}"
        return (
            f"HD {self.result} {name}({parameters}) {{\n#ifdef __CUDA_ARCH__\n  {self.device}\n"
            f"#else\n  {self.host}\n#endif\n}}"
        )


@dataclass(frozen=True)
class WarpOperation:
    """What the lanes of a warp do together: from a word ``x`` of each; the host has the ``lane``'s number."""

    device: str
    host: str

    def definition(self, name: str) -> str:
        return (
            f"__device__ u64 {name}(u64 x) {{ {self.device} }}\n"
            f"u64 {name}_host(const Lanes& x, int lane) {{ (void)lane; {self.host} }}"
        )


def same(family: str, result: str, operands: str, text: str) -> Operation:
    """C++ for both."""
    return Operation(family, result, tuple(operands.split()), f"return {text};", f"return {text};")


def called(family: str, result: str, operands: str, device: str, host: str) -> Operation:
    """An intrinsic, and its model."""
    return Operation(family, result, tuple(operands.split()), f"return {device};", f"return {host};")


def bits(kind: str) -> str:
    """The C++ type that assembly takes."""
    return "u16" if kind in HALVES else kind


def assembly(family: str, result: str, operands: str, text: str, host: str) -> Operation:
    """PTX with the operands {d}, {a}, {b}, {c} and {e}; a result of type bool is 0 or 1 in 32 bits."""
    kinds = tuple(operands.split())
    carrier = "u32" if result == "bool" else bits(result)
    names = {p: f"%{n}" for n, p in enumerate(PARAMETERS[: len(kinds)], 1)}
    inputs = ", ".join(
        f'"{CONSTRAINTS[bits(kind)]}"({p}{".bits" if kind in HALVES else ""})'
        for kind, p in zip(kinds, PARAMETERS, strict=False)
    )
    value = f"{result}{{d}}" if result in HALVES else "d"
    device = (
        f'{carrier} d; asm("{text.format(d="%0", **names)}" : "={CONSTRAINTS[carrier]}"(d) : {inputs}); '
        f"return {value};"
    )
    return Operation(family, result, kinds, device, f"return {host};")


def instruction(family: str, name: str, result: str, operands: str, host: str) -> Operation:
    """``name d, a, b, …``"""
    text = f"{name} {{d}}" + "".join(f", {{{p}}}" for p in PARAMETERS[: len(operands.split())])
    return assembly(family, result, operands, text + ";", host)


def wide_of(kind: str) -> str:
    return f"{kind[0]}{2 * int(kind[1:])}"


# C++ ------------------------------------------------------------------------------------------------------


def integers() -> Iterator[Operation]:
    for t in INTEGERS:
        yield from arithmetic(t)
        for symbol in ("<", "<=", "==", "!=", ">", ">="):
            yield same("comparisons", "bool", f"{t} {t}", f"a {symbol} b")
        for source in INTEGERS:
            if source != t:
                yield same(f"casts to {t}", t, source, f"{t}(a)")
        if not t.endswith("128"):
            yield from wide_arithmetic(t, wide_of(t))
    for text in ("a && b", "a || b", "a != b"):
        yield same("booleans", "bool", "bool bool", text)
    yield same("booleans", "bool", "bool", "!a")
    for t in TYPES:
        yield same("selections", t, f"bool {t} {t}", "a ? b : c")


def arithmetic(t: str) -> Iterator[Operation]:
    family, two = f"integers of {'128' if t.endswith('128') else 'few'} bits", f"{t} {t}"
    for name in ("add", "sub", "mul", "smaller", "larger"):
        yield same(family, t, two, f"{name}<{t}>(a, b)")
    for symbol in "&|^":
        yield same(family, t, two, f"{t}(a {symbol} b)")
    yield same(family, t, t, f"{t}(~a)")
    yield same(family, t, t, f"neg<{t}>(a)")
    for name in ("left", "right", "rotated"):
        yield same(family, t, f"{t} u32", f"{name}<{t}>(a, b)")
    for name in ("quotient", "remainder_of"):
        yield same(f"division of {t[1:]} bits", t, two, f"{name}<{t}>(a, b)")
    if t in SIGNED:
        yield same(family, t, t, f"magnitude<{t}>(a)")


def wide_arithmetic(t: str, wide: str) -> Iterator[Operation]:
    two, bits_of_it = f"{t} {t}", int(t[1:])
    yield same("wide products", wide, two, f"mul<{wide}>(a, b)")
    yield same("wide products", t, two, f"{t}(mul<{wide}>(a, b) >> {bits_of_it})")
    yield same("fixed point", t, two, f"fixed_saturated<{t}, s128>(a, b)")
    for shift in (1, bits_of_it // 2, bits_of_it - 1):
        yield same("fixed point", t, two, f"fixed_product<{t}, {wide}, {shift}>(a, b)")


def strings_of_bits() -> Iterator[Operation]:
    for a, b in ((1, 1), (5, 17), (13, 31), (32, 16), (8, 40), (3, 60), (31, 2)):
        of = f"<{a}, {b}>"
        yield same("bit fields", "u64", "u64 u64 u64", f"fields_of{of}(a, b, c)")
        yield same("bit fields", "u64", "u64 u64", f"second_field_set{of}(a, b)")
        yield same("bit fields", "u64", "u64", f"fields_summed{of}(a)")
        yield same("bit fields", "s64", "u64", f"signed_fields_mixed{of}(a)")
    yield same("strings of bits", "u32", "u64 u64 u32", "byte_at(a, b, c)")
    yield same("strings of bits", "u64", "u64 u32 u32", "byte_put(a, b, c)")
    yield same("strings of bits", "u32", "u32", "digit_of(a)")
    yield same("strings of bits", "u32", "u64", "longest_run(a)")
    yield same("strings of bits", "u32", "u64", "parity(a)")
    yield same("strings of bits", "u64", "u32 u32", "interleaved(a, b)")
    yield same("strings of bits", "u32", "u32 u32", "checksum(a, b)")


def reals() -> Iterator[Operation]:
    for t in REALS:
        two = f"{t} {t}"
        for symbol in "+-*/":
            yield same(t, t, two, f"a {symbol} b")
        for name in ("fabs", "sqrt", "trunc", "floor", "ceil", "rint", "round"):
            yield same(t, t, t, f"{name}(a)")
        yield same(t, t, t, "-a")
        yield same(t, t, two, f"copysign(a, b != b ? {t}(1) : b)")
        yield same(t, t, f"{t} {t} {t}", "fma(a, b, c)")
        yield called(t, t, two, "fmin(a, b)", "least(a, b)")
        yield called(t, t, two, "fmax(a, b)", "greatest(a, b)")
        yield same("functions of reals", t, two, "fmod(a, b)")
        yield same("functions of reals", t, two, "nextafter(a, b)")
        yield same("functions of reals", t, f"{t} s32", "scaled(a, b)")
        yield same("functions of reals", "s32", t, "exponent_of(a)")
        for symbol in ("<", "<=", "==", "!=", ">", ">="):
            yield same("comparisons of reals", "bool", two, f"a {symbol} b")
            yield same("comparisons of reals", "bool", two, f"!(a {symbol} b)")
        for name in ("isnan", "isinf", "isfinite"):
            yield same("comparisons of reals", "bool", t, f"{name}(a)")
        for kind in INTEGERS:
            yield same("casts of reals", kind, t, f"within<{kind}>(a)")
            yield same("casts to reals", t, kind, f"{t}(a)")
    for t, kind in zip((*REALS, *HALVES), ("u32", "u64", "u16", "u16"), strict=True):
        yield same("bits of reals", kind, t, "bits_of(a)")
        if t in REALS:
            yield same("bits of reals", t, kind, f"same_bits<{t}>(a)")
        else:
            yield same("bits of reals", t, kind, f"{t}{{a}}")
    yield same("casts to reals", "f64", "f32", "f64(a)")
    yield same("casts to reals", "f32", "f64", "f32(a)")


# Intrinsics -----------------------------------------------------------------------------------------------


def intrinsics() -> Iterator[Operation]:
    two, three = "u32 u32", "u32 u32 u32"
    table = (
        ("u32", two, "__umulhi(a, b)", "high_product(a, b)"),
        ("s32", "s32 s32", "__mulhi(a, b)", "high_product(a, b)"),
        ("u64", "u64 u64", "__umul64hi(a, b)", "high_product(a, b)"),
        ("s64", "s64 s64", "__mul64hi(a, b)", "high_product(a, b)"),
        ("u32", two, "__umul24(a, b)", "(a & 0xffffff) * (b & 0xffffff)"),
        ("s32", "s32 s32", "__mul24(a, b)", "s32(low24(a) * low24(b))"),
        ("u32", three, "__usad(a, b, c)", "(a < b ? b - a : a - b) + c"),
        ("u32", "s32 s32 u32", "__sad(a, b, c)", "u32(apart(a, b)) + c"),
        ("s32", "s32 s32", "__hadd(a, b)", "s32((s64(a) + b) >> 1)"),
        ("s32", "s32 s32", "__rhadd(a, b)", "s32((s64(a) + b + 1) >> 1)"),
        ("u32", two, "__uhadd(a, b)", "u32((u64(a) + b) >> 1)"),
        ("u32", two, "__urhadd(a, b)", "u32((u64(a) + b + 1) >> 1)"),
        ("u32", "u32", "__clz(a)", "leading_zeros(a)"),
        ("u32", "u64", "__clzll(a)", "leading_zeros(a)"),
        ("u32", "u32", "__ffs(a)", "first_one(a)"),
        ("u32", "u64", "__ffsll(a)", "first_one(a)"),
        ("u32", "u32", "__popc(a)", "ones(a)"),
        ("u32", "u64", "__popcll(a)", "ones(a)"),
        ("u32", "u32", "__brev(a)", "turned(a)"),
        ("u64", "u64", "__brevll(a)", "turned(a)"),
        ("u32", three, "__byte_perm(a, b, c)", "permuted(a, b, c & 0x7777)"),
        ("u32", three, "__funnelshift_l(a, b, c)", "funnelled(true, a, b, c & 31)"),
        ("u32", three, "__funnelshift_r(a, b, c)", "funnelled(false, a, b, c & 31)"),
        ("u32", three, "__funnelshift_lc(a, b, c)", "funnelled(true, a, b, c < 32 ? c : 32)"),
        ("u32", three, "__funnelshift_rc(a, b, c)", "funnelled(false, a, b, c < 32 ? c : 32)"),
        ("u32", "u32 u32 s32", "__fns(a, b & 31, c % 40)", "nth_one(a, b & 31, c % 40)"),
        ("u32", three, "__dp4a(a, b, c)", "(dot4<u8, u8>(a, b, c))"),
        ("s32", "s32 s32 s32", "__dp4a(a, b, c)", "s32(dot4<s8, s8>(a, b, c))"),
        ("u32", three, "__dp2a_lo(a, b, c)", "(dot2<u16, u8>(a, b, c, false))"),
        ("s32", "s32 s32 s32", "__dp2a_hi(a, b, c)", "s32(dot2<s16, s8>(a, b, c, true))"),
    )
    for result, operands, device, host in table:
        yield called("intrinsics of integers", result, operands, device, host)


def packed() -> Iterator[Operation]:
    """Parts of a register, and their saturating, averaging and comparing relatives."""
    relations = {"eq": "==", "ne": "!=", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}
    for count, size in ((2, 16), (4, 8)):
        s, u = f"s{size}", f"u{size}"

        def of(name: str, host: str, part: str, operands: str = "u32 u32", count: int = count) -> Operation:
            second = "b" if operands == "u32 u32" else "a"
            given = ", ".join(PARAMETERS[: len(operands.split())])
            return called(
                "packed integers",
                "u32",
                operands,
                f"__v{name}{count}({given})",
                f"parts<{part}>(a, {second}, [](s64 x, s64 y) {{ (void)y; return {host}; }})",
            )

        yield of("add", "x + y", s)
        yield of("sub", "x - y", s)
        for sign, part in (("s", s), ("u", u)):
            yield of(f"add{sign}s", f"clamped<{part}>(x + y)", part)
            yield of(f"sub{sign}s", f"clamped<{part}>(x - y)", part)
            yield of(f"max{sign}", "x < y ? y : x", part)
            yield of(f"min{sign}", "x < y ? x : y", part)
            yield of(f"absdiff{sign}", "apart(x, y)", part)
            yield of(
                f"avg{sign}",
                "(x + y + (x + y >= 0 || " + ("true" if sign == "u" else "false") + ")) >> 1",
                part,
            )
            yield called(
                "packed integers",
                "u32",
                "u32 u32",
                f"__vsad{sign}{count}(a, b)",
                f"summed_parts<{part}>(a, b, 0, apart)",
            )
            for name, symbol in relations.items():
                if name in {"eq", "ne"} and sign == "s":
                    continue
                suffix = "" if name in {"eq", "ne"} else sign
                yield of(f"cmp{name}{suffix}", f"x {symbol} y ? -1 : 0", part)
                yield of(f"set{name}{suffix}", f"x {symbol} y", part)
        yield of("haddu", "(x + y) >> 1", u)
        yield of("neg", "-x", s, "u32")
        yield of("negss", f"clamped<{s}>(-x)", s, "u32")
        yield of("abs", "x < 0 ? -x : x", s, "u32")
        yield of("absss", f"clamped<{s}>(x < 0 ? -x : x)", s, "u32")
    three = "u32 u32 u32"
    for part, kind in (("s16", "s16x2"), ("u16", "u16x2")):
        for extremum, symbol in (("max", "<"), ("min", ">")):
            for name, inner in (
                (f"vi{extremum}3", f"x {symbol} y ? y : x"),
                (f"viadd{extremum}", f"{part}(x + y)"),
            ):
                first = f"parts<{part}>(a, b, [](s64 x, s64 y) {{ return {inner}; }})"
                host = f"parts<{part}>({first}, c, [](s64 x, s64 y) {{ return x {symbol} y ? y : x; }})"
                yield called("packed integers", "u32", three, f"__{name}_{kind}(a, b, c)", host)


def rounded_arithmetic() -> Iterator[Operation]:
    for (suffix, mode), (t, letter) in product(ROUNDINGS.items(), (("f32", "f"), ("f64", "d"))):
        family = f"rounding of {t}"
        for name, model in (("add", "plus"), ("sub", "minus"), ("mul", "times"), ("div", "over")):
            device = f"__{letter}{name}_{suffix}(a, b)"
            yield called(family, t, f"{t} {t}", device, f"rounded({mode}, {model}, a, b)")
        yield called(family, t, t, f"__{letter}sqrt_{suffix}(a)", f"rounded({mode}, root, a)")
        yield called(family, t, t, f"__{letter}rcp_{suffix}(a)", f"rounded({mode}, over, {t}(1), a)")
        fma = "__fmaf" if t == "f32" else "__fma"
        yield called(
            family, t, f"{t} {t} {t}", f"{fma}_{suffix}(a, b, c)", f"rounded({mode}, fused, a, b, c)"
        )


def rounded_conversions() -> Iterator[Operation]:
    names = {"s32": "int", "u32": "uint", "s64": "ll", "u64": "ull"}
    for (suffix, mode), (kind, name) in product(ROUNDINGS.items(), names.items()):
        for t, real in (("f32", "float"), ("f64", "double")):
            family = f"rounded casts of {t}"
            yield called(family, kind, t, f"__{real}2{name}_{suffix}(a)", f"integral<{kind}>({mode}, a)")
            if (real, kind) not in {("double", "s32"), ("double", "u32")} or suffix == "rn":
                yield called(
                    "rounded casts to reals",
                    t,
                    kind,
                    f"__{name}2{real}_{suffix}(a)",
                    f"rounded({mode}, to<{t}>, a)",
                )
    for suffix, mode in ROUNDINGS.items():
        yield called(
            "rounded casts to reals",
            "f32",
            "f64",
            f"__double2float_{suffix}(a)",
            f"rounded({mode}, to<f32>, a)",
        )


# PTX ------------------------------------------------------------------------------------------------------


def carry_chains() -> Iterator[Operation]:
    """Three instructions on one flag, each any of four."""
    steps = {
        "add": ("{x}, {y}", "add({x}, {y}, {flag})"),
        "sub": ("{x}, {y}", "sub({x}, {y}, {flag})"),
        "mad.lo": ("{x}, {y}, {{e}}", "low({x}, {y}, e, {flag})"),
        "mad.hi": ("{x}, {y}, {{e}}", "high({x}, {y}, e, {flag})"),
    }
    places = (("u", "a", "b"), ("v", "c", "a"), ("w", "b", "c"))
    for t, chosen in product(("u32", "s32", "u64", "s64"), product(steps, repeat=3)):
        ptx, host = [], []
        for n, (step, (target, x, y)) in enumerate(zip(chosen, places, strict=True)):
            opcode, *part = step.split(".")
            name = ".".join([opcode + "c" * (n > 0), *part, *["cc"] * (n < 2), t])
            operands, model = steps[step]
            ptx.append(f"{name} {target}, " + operands.format(x=f"{{{x}}}", y=f"{{{y}}}"))
            host.append(f"const {t} {target} = chain." + model.format(x=x, y=y, flag=str(n > 0).lower()))
        size = t[1:]
        mixed = f"xor.b{size} u, u, v; xor.b{size} {{d}}, u, w;"
        made = assembly(
            "carry chains",
            t,
            f"{t} {t} {t} {t}",
            f"{{{{ .reg .b{size} u, v, w; {'; '.join(ptx)}; {mixed} }}}}",
            "u ^ v ^ w",
        )
        yield replace(made, host=f"Chain<{t}> chain; {'; '.join(host)}; {made.host}")


def bit_instructions() -> Iterator[Operation]:
    family, three = "instructions on bits", "u32 u32 u32"
    # The PTX ISA restricts places and lengths to 8 bits. A GPU cuts longer ones off for 32 bits only.
    for t in ("u32", "s32"):
        yield instruction(family, f"bfe.{t}", t, f"{t} u32 u32", f"extracted<{t}>(a, b, c)")
    yield instruction(family, "bfi.b32", "u32", "u32 u32 u32 u32", "inserted(a, b, c, e)")
    for t in ("u32", "s32", "u64", "s64"):
        small = (
            "{{ .reg .b32 x, y; and.b32 x, {b}, 127; and.b32 y, {c}, 127; bfe." + t + " {d}, {a}, x, y; }}"
        )
        yield assembly(family, t, f"{t} u32 u32", small, f"extracted<{t}>(a, b & 127, c & 127)")
        yield instruction(family, f"bfind.{t}", "u32", t, f"top_bit<{t}>(a)")
        yield instruction(family, f"bfind.shiftamt.{t}", "u32", t, f"top_bit<{t}>(a, true)")
    for size in (32, 64):
        t = f"u{size}"
        small = "{{ .reg .b32 x, y; and.b32 x, {c}, 127; and.b32 y, {e}, 127; %s {d}, {a}, {b}, x, y; }}"
        yield assembly(
            family, t, f"{t} {t} u32 u32", small % f"bfi.b{size}", "inserted(a, b, c & 127, e & 127)"
        )
        yield instruction(family, f"popc.b{size}", "u32", t, "ones(a)")
        yield instruction(family, f"clz.b{size}", "u32", t, "leading_zeros(a)")
        yield instruction(family, f"brev.b{size}", t, t, "turned(a)")
    for size in (16, 32, 64):
        t = f"u{size}"
        s = f"s{size}"
        yield instruction(family, f"cnot.b{size}", t, t, f"{t}(a == 0)")
        amount = "{{ .reg .b32 x; and.b32 x, {b}, 127; %s {d}, {a}, x; }}"
        yield assembly(
            family,
            t,
            f"{t} u32",
            amount % f"shl.b{size}",
            f"{t}((b & 127) < {size} ? u64(a) << (b & 127) : 0)",
        )
        yield assembly(
            family, t, f"{t} u32", amount % f"shr.u{size}", f"{t}((b & 127) < {size} ? a >> (b & 127) : 0)"
        )
        yield assembly(
            family, s, f"{s} u32", amount % f"shr.s{size}", f"{s}(a >> std::min(b & 127, {size - 1}u))"
        )
    for way, limit in product("lr", ("wrap", "clamp")):
        amount = "c & 31" if limit == "wrap" else "c < 32 ? c : 32"
        host = f"funnelled({'true' if way == 'l' else 'false'}, a, b, {amount})"
        yield instruction(family, f"shf.{way}.{limit}.b32", "u32", three, host)
    yield instruction(family, "prmt.b32", "u32", three, "permuted(a, b, c)")
    picks = {
        "f4e": "s + n",
        "b4e": "s - n",
        "rc8": "s",
        "ecl": "n > s ? n : s",
        "ecr": "n < s ? n : s",
        "rc16": "(s & 1) * 2 + (n & 1)",
    }
    for mode, pick in picks.items():
        host = f"picked(a, b, [s = c & 3](u32 n) {{ (void)n; return {pick}; }})"
        yield instruction(family, f"prmt.b32.{mode}", "u32", three, host)
    for table in (0x01, 0x1B, 0x2D, 0x80, 0x96, 0xB4, 0xCA, 0xE8, 0xF8, 0xFE):
        text = f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table};"
        yield assembly(family, "u32", three, text, f"looked_up(a, b, c, {table})")
    yield instruction(family, "bmsk.clamp.b32", "u32", "u32 u32", "mask_of(a, b)")
    yield instruction(family, "bmsk.wrap.b32", "u32", "u32 u32", "mask_of(a & 31, b & 31)")
    for a, b in product("us", repeat=2):
        kinds = f"{a}32.{b}32"
        yield instruction(family, f"dp4a.{kinds}", "u32", three, f"(dot4<{a}8, {b}8>(a, b, c))")
        for half in ("lo", "hi"):
            host = f"(dot2<{a}16, {b}8>(a, b, c, {'true' if half == 'hi' else 'false'}))"
            yield instruction(family, f"dp2a.{half}.{kinds}", "u32", three, host)


def integer_instructions() -> Iterator[Operation]:
    family = "instructions on integers"
    for name, host in (("add.sat", "s128(a) + b"), ("sub.sat", "s128(a) - b")):
        yield instruction(family, f"{name}.s32", "s32", "s32 s32", f"clamped<s32>({host})")
    yield instruction(
        family, "mad.hi.sat.s32", "s32", "s32 s32 s32", "clamped<s32>(s128(high_product(a, b)) + c)"
    )
    yield instruction(
        family, "mul24.hi.u32", "u32", "u32 u32", "u32(u64(a & 0xffffff) * (b & 0xffffff) >> 16)"
    )
    yield instruction(family, "mul24.hi.s32", "s32", "s32 s32", "s32(low24(a) * low24(b) >> 16)")
    yield instruction(family, "mad24.lo.u32", "u32", "u32 u32 u32", "(a & 0xffffff) * (b & 0xffffff) + c")
    yield instruction(family, "mad24.lo.s32", "s32", "s32 s32 s32", "s32(low24(a) * low24(b) + c)")
    for t in ("u16", "s16", "u32", "s32", "u64", "s64"):
        yield instruction(family, f"mad.lo.{t}", t, f"{t} {t} {t}", f"add<{t}>(mul<{t}>(a, b), c)")
        yield instruction(family, f"mad.hi.{t}", t, f"{t} {t} {t}", f"add<{t}>(high_product(a, b), c)")
        yield instruction(
            family,
            f"sad.{t}",
            t,
            f"{t} {t} {t}",
            f"add<{t}>({t}(a < b ? sub<{t}>(b, a) : sub<{t}>(a, b)), c)",
        )
        yield instruction(family, f"slct.{t}.s32", t, f"{t} {t} s32", "c >= 0 ? a : b")
        yield instruction(family, f"slct.{t}.f32", t, f"{t} {t} f32", "c >= 0 ? a : b")
        yield instruction(family, f"slct.ftz.{t}.f32", t, f"{t} {t} f32", "flushed(c) >= 0 ? a : b")
    for to, source in product(("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"), repeat=2):
        holder, from_holder = (t.replace("8", "32") if t in {"u8", "s8"} else t for t in (to, source))
        saturated = f"{holder}(clamped<{to}>({source}(a)))"
        holds_all = int(to[1:]) > int(source[1:]) and (to[0] == "s" or source[0] == "u")
        if to != source and not holds_all:
            yield instruction(
                "conversions of integers", f"cvt.sat.{to}.{source}", holder, from_holder, saturated
            )
        yield instruction(
            "conversions of integers",
            f"cvt.{to}.{source}",
            holder,
            from_holder,
            f"{holder}({to}({source}(a)))",
        )


RELATIONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
COMBINATIONS = {"and": "&", "or": "|", "xor": "^"}


def relations(kind: str) -> Iterator[tuple[str, str]]:
    """Relations of a type, and what they mean of x and y; of a NaN the ordered ones never hold."""
    for name, symbol in RELATIONS.items():
        if kind not in REALS:
            yield name, f"x {symbol} y"
        else:
            yield name, f"x == x && y == y && x {symbol} y"
            yield f"{name}u", f"x != x || y != y || x {symbol} y"
    if kind in REALS:
        yield "num", "x == x && y == y"
        yield "nan", "x != x || y != y"


def predicates() -> Iterator[Operation]:
    """setp with two results and set, combined with another predicate, which may be negated."""
    for kind in ("u16", "s16", "u32", "s32", "u64", "s64", "f32", "f64"):
        for flush in ("", ".ftz") if kind == "f32" else ("",):
            x, y = ("flushed(a)", "flushed(b)") if flush else ("a", "b")
            for relation, means in relations(kind):
                holds = means.replace("x", x).replace("y", y)
                for word, symbol in COMBINATIONS.items():
                    yield from combined(f"{relation}.{word}{flush}", kind, holds, symbol)


def combined(modifiers: str, kind: str, holds: str, symbol: str) -> Iterator[Operation]:
    family, operands = f"predicates of {kind}", f"{kind} {kind} u32"
    for negated, other in (("", "c != 0"), ("!", "c == 0")):
        text = (
            "{{ .reg .pred p, q, r, s; setp.ne.u32 q, {c}, 0; "
            f"setp.{modifiers}.{kind} p|r, {{a}}, {{b}}, {negated}q; "
            "xor.pred s, p, r; selp.u32 {d}, 1, 0, p; @!s xor.b32 {d}, {d}, 2; }}"
        )
        first, second = f"(({holds}) {symbol} ({other}))", f"(!({holds}) {symbol} ({other}))"
        yield assembly(family, "u32", operands, text, f"u32({first}) ^ ({first} == {second} ? 2u : 0u)")
    setp = "{{ .reg .pred q; setp.ne.u32 q, {c}, 0; "
    text = f"{setp}set.{modifiers}.u32.{kind} {{d}}, {{a}}, {{b}}, q; }}}}"
    yield assembly(family, "u32", operands, text, f"(({holds}) {symbol} (c != 0)) ? ~0u : 0u")


def flushing() -> Iterator[Operation]:
    """.ftz and .sat, with NaN and denormals among the operands; where a tiny result is exact."""
    family, two = "flushed and saturated reals", "f32 f32"
    for (mode, flush, sat), (name, model) in product(
        product(("rn", "rz", "rm", "rp"), ("", ".ftz"), ("", ".sat")), (("add", "plus"), ("sub", "minus"))
    ):
        a, b = ("flushed(a)", "flushed(b)") if flush else ("a", "b")
        host = f"rounded({mode}, {model}, {a}, {b})"
        host = f"flushed({host})" if flush else host
        host = f"saturated({host})" if sat else host
        yield instruction(family, f"{name}.{mode}{flush}{sat}.f32", "f32", two, host)
    for mode in ("rn", "rz", "rm", "rp"):
        yield instruction(
            family, f"mul.{mode}.sat.f32", "f32", two, f"saturated(rounded({mode}, times, a, b))"
        )
        host = f"saturated(rounded({mode}, fused, a, b, c))"
        yield instruction(family, f"fma.{mode}.sat.f32", "f32", "f32 f32 f32", host)
        host = f"flushed_result({mode}, (long double)(flushed(a)) * flushed(b))"
        yield instruction(family, f"mul.{mode}.ftz.f32", "f32", two, host)
        yield instruction(
            family, f"fma.{mode}.ftz.f32", "f32", "f32 f32 f32", f"flushed_fma({mode}, a, b, c)"
        )
        yield instruction(family, f"sqrt.{mode}.ftz.f32", "f32", "f32", f"rounded({mode}, root, flushed(a))")
    for name, model in (("min", "least"), ("max", "greatest")):
        for nan in ("", ".NaN"):
            host = f"{model}(flushed(a), flushed(b), {'true' if nan else 'false'})"
            yield instruction(family, f"{name}.ftz{nan}.f32", "f32", two, host)
            yield instruction(family, f"{name}{nan}.f32", "f32", two, host.replace("flushed", ""))
            size = f"{model}(std::fabs(a), std::fabs(b), {'true' if nan else 'false'})"
            host = f"std::copysign({size}, std::signbit(a) != std::signbit(b) ? -1.0f : 1.0f)"
            yield instruction(family, f"{name}{nan}.xorsign.abs.f32", "f32", two, host)
    yield instruction(family, "abs.ftz.f32", "f32", "f32", "flushed(std::fabs(a))")
    yield instruction(family, "neg.ftz.f32", "f32", "f32", "-flushed(a)")
    for kind in REALS:
        for name in ("finite", "infinite", "number", "notanumber", "subnormal"):
            text = f"{{{{ .reg .pred p; testp.{name}.{kind} p, {{a}}; selp.u32 {{d}}, 1, 0, p; }}}}"
            model = {
                "finite": "std::isfinite(a)",
                "infinite": "std::isinf(a)",
                "number": "a == a",
                "notanumber": "a != a",
                "subnormal": "std::fpclassify(a) == FP_SUBNORMAL",
            }[name]
            yield assembly(family, "bool", kind, text, model)


def conversions() -> Iterator[Operation]:
    sources = {"f32": "a", "f64": "a", "f16": "wide(a)"}
    for mode in ("rn", "rz", "rm", "rp"):
        for to, (source, host) in product(
            ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"), sources.items()
        ):
            holder = to.replace("8", "32") if to in {"u8", "s8"} else to
            family = f"conversions of {source}"
            # What half precision holds is exact in single precision, whose NaN becomes zero.
            exact = f"f32({host})" if source == "f16" else host
            for sat in ("", ".sat"):
                name = f"cvt.{mode}i{sat}.{to}.{source}"
                yield instruction(family, name, holder, source, f"{holder}(integral<{to}>({mode}, {exact}))")
            if source == "f32":
                name = f"cvt.{mode}i.ftz.{to}.f32"
                yield instruction(
                    family, name, holder, "f32", f"{holder}(integral<{to}>({mode}, flushed(a)))"
                )
            real = {"f32": f"rounded({mode}, to<f32>, {to}(a))", "f64": f"rounded({mode}, to<f64>, {to}(a))"}
            real["f16"] = f"half({mode}, {to}(a))"
            yield instruction(
                "conversions to reals", f"cvt.{mode}.{source}.{to}", source, holder, real[source]
            )
        for kind in REALS:
            yield instruction(
                "conversions of reals", f"cvt.{mode}i.{kind}.{kind}", kind, kind, f"whole({mode}, a)"
            )
        yield instruction(
            "conversions of reals", f"cvt.{mode}i.f16.f16", "f16", "f16", f"half(rn, whole({mode}, wide(a)))"
        )
        yield instruction(
            "conversions of reals", f"cvt.{mode}.f32.f64", "f32", "f64", f"rounded({mode}, to<f32>, a)"
        )
        yield instruction(
            "conversions of reals",
            f"cvt.{mode}.sat.f32.f64",
            "f32",
            "f64",
            f"saturated(rounded({mode}, to<f32>, a))",
        )
        for kind in REALS:
            yield instruction(
                "conversions of reals", f"cvt.{mode}.f16.{kind}", "f16", kind, f"half({mode}, a)"
            )
    for mode in ("rn", "rz"):
        yield instruction("conversions of reals", f"cvt.{mode}.bf16.f32", "bf16", "f32", f"brain({mode}, a)")
        yield instruction(
            "conversions of reals", f"cvt.{mode}.relu.f16.f32", "f16", "f32", f"relu(half({mode}, a))"
        )
        for kind, model in (("f16", "half"), ("bf16", "brain")):
            host = f"u32(bits_of({model}({mode}, a))) << 16 | bits_of({model}({mode}, b))"
            yield instruction("conversions of reals", f"cvt.{mode}.{kind}x2.f32", "u32", "f32 f32", host)
    yield instruction("conversions of reals", "cvt.sat.f32.f32", "f32", "f32", "saturated(a)")
    yield instruction("conversions of reals", "cvt.f32.f16", "f32", "f16", "f32(wide(a))")
    yield instruction("conversions of reals", "cvt.f64.f16", "f64", "f16", "wide(a)")
    yield assembly("conversions of reals", "f32", "bf16", "mov.b32 {d}, {{ 0, {a} }};", "f32(wide(a))")


def halves() -> Iterator[Operation]:
    for name, symbol in (("add", "+"), ("sub", "-"), ("mul", "*")):
        exact = f"half(rn, (long double)(wide(a)) {symbol} wide(b))"
        yield instruction("f16", f"{name}.f16", "f16", "f16 f16", exact)
        yield instruction("f16", f"{name}.sat.f16", "f16", "f16 f16", f"half(rn, saturated(wide({exact})))")
    for kind, rounding in (("f16", "half"), ("bf16", "brain")):
        two = f"{kind} {kind}"
        fma = f"{rounding}_fma(a, b, c)"
        yield instruction(kind, f"fma.rn.{kind}", kind, f"{two} {kind}", fma)
        yield instruction(kind, f"fma.rn.relu.{kind}", kind, f"{two} {kind}", f"relu({fma})")
        for name, model in (("min", "least"), ("max", "greatest")):
            chosen = f"{model}(wide(a), wide(b)"
            yield instruction(kind, f"{name}.{kind}", kind, two, f"{rounding}(rn, {chosen}))")
            yield instruction(kind, f"{name}.NaN.{kind}", kind, two, f"{rounding}(rn, {chosen}, true))")
        yield instruction(kind, f"neg.{kind}", kind, kind, f"{rounding}(rn, -wide(a))")
        yield instruction(kind, f"abs.{kind}", kind, kind, f"{rounding}(rn, std::fabs(wide(a)))")
    for relation, means in relations("f32"):
        text = f"{{{{ .reg .pred p; setp.{relation}.f16 p, {{a}}, {{b}}; selp.u32 {{d}}, 1, 0, p; }}}}"
        host = means.replace("x", "wide(a)").replace("y", "wide(b)")
        yield assembly("f16", "bool", "f16 f16", text, host)


def atomics() -> Iterator[Operation]:
    """On a place of the thread's own, which it fills first: what was there, mixed with what is there then."""
    updates = {
        "atomicAdd": ("u32 s32 u64 f32 f64", "add"),
        "atomicMin": ("u32 s32 u64 s64", "smaller"),
        "atomicMax": ("u32 s32 u64 s64", "larger"),
        "atomicAnd": ("u32 u64", "&"),
        "atomicOr": ("u32 u64", "|"),
        "atomicXor": ("u32 u64", "^"),
        "atomicExch": ("u32 u64 f32", "b"),
        "atomicInc": ("u32", "a >= b ? 0u : a + 1"),
        "atomicDec": ("u32", "a == 0 || a > b ? b : a - 1"),
    }
    global_place, shared_place = "SLOT(T)", "SHARED_SLOT(T)"
    for (name, (kinds, model)), slot in product(updates.items(), (global_place, shared_place)):
        for t in kinds.split():
            host = {"&": "a & b", "|": "a | b", "^": "a ^ b"}.get(model, model)
            if model in {"add", "smaller", "larger"}:
                host = f"{model}<{t}>(a, b)" if t not in REALS else "a + b"
            if name == "atomicAdd" and t == "f32" and slot == global_place:
                host = "flushed(flushed(a) + flushed(b))"
            device = (
                f"using T = {t}; T* place = {slot}; *place = a; const T old = {name}(place, b); "
                "return word(old) ^ word(*place) * 3;"
            )
            yield Operation("atomics", "u64", (t, t), device, f"return word(a) ^ word({t}({host})) * 3;")
    for t, slot in product(("u16", "u32", "u64"), (global_place, shared_place)):
        kind = "unsigned short" if t == "u16" else t
        device = (
            f"using T = {kind}; T* place = {slot}; *place = a; const T old = atomicCAS(place, T(b), T(c)); "
            "return word(old) ^ word(*place) * 3;"
        )
        host = "return word(a) ^ word(a == b ? c : a) * 3;"
        yield Operation("atomics", "u64", (t, t, t), device, host)


# Warps ----------------------------------------------------------------------------------------------------

ALL = "0xffffffffu"


def warp_operations() -> Iterator[WarpOperation]:
    conditions = ("(x & 1)", "!(x & 3)", "(s32(x) < 0)", "(u32(x) > 0x7fu || (x & 1))", "(x >> 63)")
    for holds in conditions:
        where = f"[](u64 x) {{ return {holds}; }}"
        yield WarpOperation(f"return __ballot_sync({ALL}, {holds});", f"return ballot(x, {where});")
        yield WarpOperation(f"return __any_sync({ALL}, {holds}) != 0;", f"return ballot(x, {where}) != 0;")
        yield WarpOperation(
            f"return __all_sync({ALL}, {holds}) != 0;", f"return ballot(x, {where}) == {ALL};"
        )
        for negated in ("", "!"):
            yield WarpOperation(
                'u32 d; asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; '
                f'vote.sync.uni.pred q, {negated}p, -1; selp.u32 %0, 1, 0, q; }}" '
                f': "=r"(d) : "r"(u32({holds}))); return d;',
                f"const u32 m = ballot(x, {where}); return m == 0 || m == {ALL};",
            )
        # Those of a part of the warp, behind a branch.
        yield WarpOperation(
            f"const u32 m = __ballot_sync({ALL}, x & 2); u64 r = 7; "
            f"if (x & 2) r = u64(__ballot_sync(m, {holds})) << 2 | (__any_sync(m, {holds}) ? 2 : 0) | "
            f"(__all_sync(m, {holds}) ? 1 : 0); return r;",
            "const u32 m = ballot(x, [](u64 x) { return x & 2; }); if (!(x[lane] & 2)) return 7; "
            f"const u32 h = ballot(x, {where}) & m; return u64(h) << 2 | (h ? 2 : 0) | (h == m ? 1 : 0);",
        )
    for mode, letter in (("up", "u"), ("down", "d"), ("bfly", "b"), ("idx", "i")):
        for offset, segments in product((0, 1, 5, 16, 31, 33), (0, 16, 24, 28, 30)):
            c = segments << 8 | (0 if mode == "up" else 31)
            yield WarpOperation(
                f'u32 d, p; asm volatile("{{ .reg .pred q; shfl.sync.{mode}.b32 %0|q, %2, {offset}, {c}, -1; '
                'selp.u32 %1, 0, 0x80000000, q; }" : "=r"(d), "=r"(p) : "r"(u32(x))); return d ^ p;',
                f"return shuffled(x, lane, '{letter}', {offset}, {c});",
            )
    yield WarpOperation(
        f"return __match_any_sync({ALL}, u32(x & 3));",
        "const u64 own = x[lane] & 3; return ballot(x, [own](u64 v) { return (v & 3) == own; });",
    )
    yield WarpOperation(
        f"return __match_any_sync({ALL}, x >> 61);",
        "const u64 own = x[lane] >> 61; return ballot(x, [own](u64 v) { return v >> 61 == own; });",
    )
    yield WarpOperation(
        f"int p; const u32 m = __match_all_sync({ALL}, u32(x & 1 ? 5 : 5 + (x >> 60 == 3)), &p); "
        "return m << 1 | p;",
        "const u32 odd = ballot(x, [](u64 v) { return !(v & 1) && v >> 60 == 3; }); "
        f"return odd == 0 || odd == {ALL} ? u32({ALL} << 1 | 1) : 0u;",
    )
    reductions = {"add": "a + b", "min": "a < b ? a : b", "max": "a < b ? b : a"}
    for (name, f), kind in product(reductions.items(), ("u32", "s32")):
        how = f"[]({kind} a, {kind} b) {{ return {f if name != 'add' else 'u32(a) + u32(b)'}; }}"
        yield WarpOperation(
            f"return u32(__reduce_{name}_sync({ALL}, {kind}(x)));", f"return u32(reduced<{kind}>(x, {how}));"
        )
    for name, symbol in (("and", "&"), ("or", "|"), ("xor", "^")):
        how = f"[](u32 a, u32 b) {{ return a {symbol} b; }}"
        yield WarpOperation(f"return __reduce_{name}_sync({ALL}, u32(x));", f"return reduced<u32>(x, {how});")


def operations() -> list[Operation]:
    families = (
        integers,
        strings_of_bits,
        reals,
        intrinsics,
        packed,
        rounded_arithmetic,
        rounded_conversions,
        carry_chains,
        bit_instructions,
        integer_instructions,
        predicates,
        flushing,
        conversions,
        halves,
        atomics,
    )
    return [operation for family in families for operation in family()]
