"""Loads, stores, atomics and copies of every width, in every state space."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
from exact import ieee, pattern, value
from golden_cases import scrambled
from models import INTEGERS, PAIRS, alike, halves, number

from grader.simulator.driver import Options, Simulator

if TYPE_CHECKING:
    from collections.abc import Callable

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
THREADS = 64
SPACES = ("global", "shared", "local", "generic global", "generic shared", "generic local")
SHAPES = [(1, bits) for bits in (8, 16, 32, 64)] + [(2, bits) for bits in (8, 16, 32, 64)]
SHAPES += [(4, bits) for bits in (8, 16, 32)]


def launched(ptx: str, given: bytes, size: int, blocks: int = 1) -> bytes:
    """What kernel k(given, result) leaves in ``size`` bytes of result; no finding."""
    with Simulator(Options(threads=1), device_bytes=1 << 22, shared_bytes=1 << 16) as simulator:
        simulator.load_ptx(HEADER + ptx)
        data, out = simulator.allocate(len(given)), simulator.allocate(size)
        simulator.write(data, given)
        addresses = [struct.pack("<Q", at) for at in (data, out)]
        outcome = simulator.launch("k", (blocks, 1, 1), (THREADS, 1, 1), addresses)
        assert outcome, outcome.message
        assert simulator.take_findings() == ()
        return simulator.read(out, size)


def cell(space: str, size: int) -> tuple[str, str]:
    """PTX that puts the address of ``size`` bytes of the thread's own into %c; the name of the space."""
    where = space.rsplit(maxsplit=1)[-1]
    if where == "global":
        text = f"mad.wide.u32 %c, %t, {size}, %out;"
    elif where == "shared":
        text = f".shared .align 16 .b8 cells[{size * THREADS}]; mov.u64 %c, cells;"
        text += f"mad.wide.u32 %c, %t, {size}, %c;"
    else:
        text = f".local .align 16 .b8 cell[{size}]; mov.u64 %c, cell;"
    if space.startswith("generic") and where != "global":
        text += f" cvta.{where}.u64 %c, %c;"
    return text, "" if space.startswith("generic") else f".{where}"


def kernel(body: str) -> str:
    return f"""
.visible .entry k(.param .u64 data, .param .u64 result) {{
  .reg .b16 %h<9>; .reg .b32 %t, %r<9>; .reg .f32 %f<9>; .reg .b64 %in, %out, %c, %d<9>, %to; .reg .pred %p;
  ld.param.u64 %in, [data];
  ld.param.u64 %out, [result];
  mov.u32 %t, %tid.x;
  {body}
  ret;
}}"""


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize(("count", "bits"), SHAPES)
def test_vectors_lie_in_order(space: str, count: int, bits: int) -> None:
    size = count * bits // 8
    register = {8: "%h", 16: "%h", 32: "%r", 64: "%d"}[bits]
    names = [f"{register}{n}" for n in range(count)]
    vector = f"{{{', '.join(names)}}}" if count > 1 else names[0]
    kind = f".v{count}.b{bits}" if count > 1 else f".b{bits}"
    place, short = cell(space, size)

    def each(instruction: str, address: str) -> str:
        return "".join(
            f"{instruction}.b{bits} {n}, [{address}+{at * bits // 8}];"
            if instruction.startswith("ld")
            else f"{instruction}.b{bits} [{address}+{at * bits // 8}], {n};"
            for at, n in enumerate(names)
        )

    given = scrambled(THREADS * 2, bits).tobytes()[: THREADS * size]
    addresses = f"mad.wide.u32 %in, %t, {size}, %in; mad.wide.u32 %to, %t, {size}, %out; {place}"
    ends = [each("ld.global", "%in"), each("st.global", "%to")]
    one_by_one = [each(f"st{short}", "%c"), each(f"ld{short}", "%c")]
    at_once = [f"st{short}{kind} [%c], {vector};", f"ld{short}{kind} {vector}, [%c];"]
    for store, load in ((at_once[0], one_by_one[1]), (one_by_one[0], at_once[1])):
        body = f"{addresses} {ends[0]} {store} {load} {ends[1]}"
        assert launched(kernel(body), given, len(given)) == given


def test_narrow_loads_fill_their_register() -> None:
    given = bytes([0x80, 0x7F, 0x34, 0xF2]) * THREADS
    body = """
  mad.wide.u32 %in, %t, 4, %in; mad.wide.u32 %to, %t, 24, %out;
  ld.global.s8 %r0, [%in]; ld.global.u8 %r1, [%in]; ld.global.s16 %r2, [%in+2]; ld.global.u16 %r3, [%in+2];
  ld.global.s8 %d0, [%in];
  st.global.v2.u32 [%to], {%r0, %r1}; st.global.v2.u32 [%to+8], {%r2, %r3}; st.global.u64 [%to+16], %d0;
"""
    expected = struct.pack("<iIiIq", -128, 128, 0xF234 - (1 << 16), 0xF234, -128)
    assert launched(kernel(body), given, 24 * THREADS) == expected * THREADS


def test_arguments_of_functions_and_kernels() -> None:
    ptx = """
.func (.param .b64 sum) add(.param .b8 a, .param .b16 b, .param .b32 c, .param .b64 d,
    .param .align 8 .b8 e[24]) {
  .reg .b16 %h<3>; .reg .b32 %r<4>; .reg .b64 %d<6>;
  ld.param.s8 %d0, [a]; ld.param.s16 %d1, [b]; ld.param.s32 %d2, [c]; ld.param.b64 %d3, [d];
  add.s64 %d0, %d0, %d1; add.s64 %d0, %d0, %d2; add.s64 %d0, %d0, %d3;
  ld.param.v2.b64 {%d4, %d5}, [e+8];
  add.s64 %d0, %d0, %d4; add.s64 %d0, %d0, %d5;
  st.param.b64 [sum], %d0;
  ret;
}
""" + kernel("""
  mad.wide.u32 %in, %t, 8, %in; mad.wide.u32 %to, %t, 8, %out;
  ld.global.b64 %d0, [%in];
  cvt.u32.u64 %r0, %d0; cvt.u16.u32 %h0, %r0;
  {
    .param .b64 sum; .param .b8 a; .param .b16 b; .param .b32 c; .param .b64 d; .param .align 8 .b8 e[24];
    st.param.b8 [a], %h0; st.param.b16 [b], %h0; st.param.b32 [c], %r0; st.param.b64 [d], %d0;
    st.param.b64 [e], 0; st.param.v2.b64 [e+8], {%d0, 5};
    call.uni (sum), add, (a, b, c, d, e);
    ld.param.b64 %d1, [sum];
  }
  st.global.b64 [%to], %d1;
""")
    words = scrambled(THREADS, 3)
    sums = [
        number(w, "s8") + number(w, "s16") + number(w, "s32") + 2 * number(w, "s64") + 5 & (1 << 64) - 1
        for w in words.tolist()
    ]
    assert launched(ptx, words.tobytes(), 8 * THREADS) == struct.pack(f"<{THREADS}Q", *sums)


def test_kernel_parameters_through_an_address() -> None:
    body = """
  mov.b64 %c, data;
  ld.param.b64 %d0, [%c+8]; ld.param.b32 %r0, [%c+8]; ld.param.u16 %r1, [%c+8]; ld.param.u8 %r2, [%c+8];
  cvt.u32.u64 %r3, %d0; and.b32 %r4, %r3, 65535; and.b32 %r5, %r3, 255;
  sub.u32 %r0, %r0, %r3; sub.u32 %r1, %r1, %r4; sub.u32 %r2, %r2, %r5;
  or.b32 %r0, %r0, %r1; or.b32 %r0, %r0, %r2;
  mad.wide.u32 %to, %t, 4, %d0;
  st.global.b32 [%to], %r0;
"""
    assert launched(kernel(body), bytes(8), 4 * THREADS) == bytes(4 * THREADS)


def test_local_memory_holds_nan_where_a_block_has_not_written() -> None:
    place, _ = cell("local", 4)
    body = f"""{place}
  ld.local.b32 %r0, [%c];
  st.local.b32 [%c], 0;
  mov.u32 %r1, %ctaid.x; mad.lo.u32 %r1, %r1, {THREADS}, %t; mad.wide.u32 %to, %r1, 4, %out;
  st.global.b32 [%to], %r0;
"""
    assert launched(kernel(body), bytes(8), 3 * 4 * THREADS, blocks=3) == b"\xff" * 3 * 4 * THREADS


def test_spaces_are_told_apart() -> None:
    spaces = ("global", "shared", "local")
    body = ".shared .b32 s; .local .b32 l; mov.u64 %d1, s; cvta.shared.u64 %d1, %d1;"
    body += "mov.u64 %d2, l; cvta.local.u64 %d2, %d2; mov.u64 %d0, %in; mov.b32 %r0, 0;"
    for n, space in enumerate(spaces):
        for m in range(3):
            body += f"isspacep.{space} %p, %d{m}; @%p or.b32 %r0, %r0, {1 << 3 * n + m};"
    body += "cvta.to.shared.u64 %d1, %d1; mov.u64 %d2, s; setp.eq.u64 %p, %d1, %d2; @%p or.b32 %r0, %r0, 512;"
    body += "mad.wide.u32 %to, %t, 4, %out; st.global.b32 [%to], %r0;"
    assert launched(kernel(body), bytes(8), 4 * THREADS) == struct.pack("<I", 0o1421) * THREADS


@pytest.mark.parametrize("size", [4, 8, 16])
def test_asynchronous_copies_fill_up_with_zeros(size: int) -> None:
    given = scrambled(THREADS * 2, 5).tobytes()[: THREADS * size]
    for taken in sorted({0, 4, size}):
        place, _ = cell("shared", size)
        body = f"""
  mad.wide.u32 %in, %t, {size}, %in; mad.wide.u32 %to, %t, {size}, %out; {place}
  cp.async.ca.shared.global [%c], [%in], {size}, {taken};
  cp.async.wait_all;
"""
        body += "".join(
            f"ld.shared.b32 %r0, [%c+{n}]; st.global.b32 [%to+{n}], %r0;" for n in range(0, size, 4)
        )
        expected = b"".join(given[at : at + taken] + bytes(size - taken) for at in range(0, len(given), size))
        assert launched(kernel(body), given, len(given)) == expected


POLICIES = (
    "createpolicy.fractional.L2::evict_first.b64 %d0, 1.0;",
    "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %d0;",
    "createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %d0, [%in], 64, 128;",
    "createpolicy.cvt.L2.b64 %d0, 0x14F0000000000000;",
)


@pytest.mark.parametrize("policy", POLICIES)
def test_hints_of_caches_change_no_value(policy: str) -> None:
    place, _ = cell("shared", 8)
    body = f"""
  {policy} {place}
  mad.wide.u32 %d1, %t, 8, %in; mad.wide.u32 %to, %t, 8, %out;
  cp.async.ca.shared.global.L2::cache_hint.L2::128B [%c], [%d1], 8, 4, %d0;
  cp.async.wait_all;
  ld.global.nc.L1::no_allocate.L2::cache_hint.b32 %r1, [%d1+4], %d0;
  ld.shared.v2.b32 {{%r2, %r3}}, [%c];
  add.u32 %r3, %r3, %r1;
  st.global.L2::cache_hint.v2.b32 [%to], {{%r2, %r3}}, %d0;
  red.global.add.L2::cache_hint.u32 [%to], 1, %d0;
"""
    given = scrambled(THREADS * 2, 5).tobytes()[: THREADS * 8]
    words = np.frombuffer(given, np.uint32).copy()
    words[::2] += 1
    assert launched(kernel(body), given, len(given)) == words.tobytes()


def test_an_asynchronous_copy_may_ignore_its_source() -> None:
    place, _ = cell("shared", 4)
    body = f"""
  {place} mad.wide.u32 %in, %t, 4, %in; mad.wide.u32 %to, %t, 4, %out;
  setp.lt.u32 %p, %t, 10;
  cp.async.ca.shared.global [%c], [%in], 4, %p;
  cp.async.wait_all;
  ld.shared.b32 %r0, [%c]; st.global.b32 [%to], %r0;
"""
    given = scrambled(THREADS, 5).tobytes()[: THREADS * 4]
    assert launched(kernel(body), given, len(given)) == bytes(40) + given[40:]


# Atomics --------------------------------------------------------------------------------------------------


def added(kind: str, flush: bool) -> Callable[[int, int], int]:
    if kind in PAIRS:
        single = added(PAIRS[kind], flush)
        return halves(single)
    add = ieee("add", "rn", kind)

    def compute(a: int, b: int) -> int:
        x, y = value(a, kind), value(b, kind)
        if not flush:
            return pattern(add(x, y), kind)
        tiny = 2.0**-126
        x, y = (v * 0.0 if abs(v) < tiny else v for v in (x, y))
        result = add(x, y)
        return pattern(result * 0.0 if abs(result) < tiny else result, kind)

    return compute


def operation(name: str, kind: str, space: str) -> Callable[[int, int], int]:
    """The new content for the old one and the operand."""
    if name == "add" and kind not in INTEGERS:
        return added(kind, kind == "f32" and space.endswith("global"))
    table: dict[str, Callable[[int, int], int]] = {
        "add": lambda a, b: a + b,
        "min": lambda a, b: min(a, b, key=lambda x: number(x, kind)),
        "max": lambda a, b: max(a, b, key=lambda x: number(x, kind)),
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "exch": lambda _, b: b,
        "inc": lambda a, b: 0 if a >= b else a + 1,
        "dec": lambda a, b: b if a == 0 or a > b else a - 1,
    }
    return table[name]


ATOMICS = [
    *((name, kind) for name in ("add", "min", "max") for kind in ("u32", "s32", "u64", "s64")),
    *((name, kind) for name in ("and", "or", "xor", "exch", "cas") for kind in ("b32", "b64")),
    *((name, "b16") for name in ("exch", "cas")),
    *((name, "u32") for name in ("inc", "dec")),
    *(("add", kind) for kind in ("f32", "f64", "f16", "bf16", "f16x2", "bf16x2")),
]


def contents(kind: str, seed: int) -> np.ndarray:
    """Random, some the same with every seed, every fifth small; of reals half are near each other."""
    width = INTEGERS.get(kind) or {"f64": 64, "f16": 16, "bf16": 16}.get(kind, 32)
    n = np.arange(THREADS)
    random = scrambled(THREADS, seed) >> np.uint64(64 - width)
    random = np.where(n % 4 == 0, scrambled(THREADS, 77) >> np.uint64(64 - width), random)
    if kind in INTEGERS:
        return np.where(n % 5 == 1, random % np.uint64(3), random).astype(f"u{width // 8}")
    single = PAIRS.get(kind, kind)
    near = np.array(
        [pattern(np.float32(0.5 + (x * seed) % 7 / 8), single) for x in range(THREADS)], np.uint64
    )
    return np.where(n % 2 == 1, near, random).astype(f"u{width // 8}")


@pytest.mark.parametrize("space", [space for space in SPACES if "local" not in space])
@pytest.mark.parametrize("returning", [True, False], ids=["atom", "red"])
def test_atomics_change_memory_and_return_what_was_there(space: str, returning: bool) -> None:
    for name, kind in ATOMICS:
        if not returning and name in {"exch", "cas"}:
            continue  # PTX has none that return nothing
        columns = [contents(kind, seed) for seed in (1, 2, 3)]
        size = columns[0].itemsize
        r = {2: "%h", 4: "%r", 8: "%d"}[size]
        place, short = cell(space, size)
        # The cells of global memory lie behind what is returned.
        place = place.replace("%out;", "%out; add.u64 %c, %c, %to;") if "global" in space else place
        exact = f"{'.noftz' if 'f16' in kind else ''}.{kind}"
        block = THREADS * size
        body = f"mov.u64 %to, {block}; {place}"
        body += f"mad.wide.u32 %in, %t, {size}, %in; mad.wide.u32 %to, %t, {size}, %out;"
        for n in range(3):
            body += f"ld.global.b{8 * size} {r}{n}, [%in+{n * block}];"
        operands = f"{r}1, {r}2" if name == "cas" else f"{r}1"
        opcode = "atom" if returning else "red"
        body += f"st{short}.b{8 * size} [%c], {r}0; mov.b{8 * size} {r}3, {r}0;"
        body += f"{opcode}{short}.{name}{exact} {f'{r}3, ' * returning}[%c], {operands};"
        body += f"ld{short}.b{8 * size} {r}4, [%c];"
        body += f"st.global.b{8 * size} [%to], {r}3; st.global.b{8 * size} [%to+{block}], {r}4;"
        given = b"".join(column.tobytes() for column in columns)
        got = np.frombuffer(launched(kernel(body), given, 2 * block), columns[0].dtype)
        old, new = got[:THREADS], got[THREADS:]
        np.testing.assert_array_equal(old, columns[0], err_msg=f"{opcode}.{name}.{kind}")
        mask = (1 << 8 * size) - 1
        for row, found in zip(zip(*(c.tolist() for c in columns), strict=True), new.tolist(), strict=True):
            before, b, c = row
            after = (
                (c if before == b else before) if name == "cas" else operation(name, kind, space)(before, b)
            )
            expected = after & mask
            assert alike(kind, found, expected), (
                f"{opcode}{short}.{name}.{kind} of {[*map(hex, row)]}: {found:#x}, not {expected:#x}"
            )
