"""What the lanes of a warp do together: shuffles, votes, matches, reductions, as the PTX ISA has them."""

from __future__ import annotations

import struct
from functools import reduce
from typing import TYPE_CHECKING

import pytest

from grader.simulator.driver import Options, Order, Simulator

if TYPE_CHECKING:
    from collections.abc import Callable

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
FULL = (1 << 32) - 1
MASKS = (FULL, 0x0F0F00FF, 1 << 13, 0x80000001)
VALUES = [(lane * 0x9E3779B1 ^ lane >> 3) & FULL for lane in range(32)]
FEW = [lane * 7 % 5 << 29 | lane // 11 for lane in range(32)]


def results(body: str, values: list[int], members: int) -> dict[int, tuple[int, int]]:
    """%d and %p of the lanes of ``members``, which alone run ``body``; %a holds the lane's value."""
    ptx = f"""
.visible .entry k(.param .u64 data) {{
  .reg .b32 %l, %a, %d, %m; .reg .b64 %i, %x, %w; .reg .pred %p, %q, %in;
  ld.param.u64 %x, [data];
  mov.u32 %l, %laneid;
  mad.wide.u32 %i, %l, 8, %x;
  ld.global.u64 %w, [%i];
  cvt.u32.u64 %a, %w;
  mov.b32 %d, 0;
  setp.ne.u32 %p, 0, 0;
  setp.gt.s32 %q, %a, 0;
  shr.u32 %m, {members}, %l;
  and.b32 %m, %m, 1;
  setp.ne.u32 %in, %m, 0;
  @!%in bra OUT;
  {body}
OUT:
  selp.u32 %m, 1, 0, %p;
  st.global.v2.u32 [%i], {{%d, %m}};
  ret;
}}"""
    with Simulator(Options(threads=1), device_bytes=1 << 22, shared_bytes=1 << 16) as simulator:
        simulator.load_ptx(HEADER + ptx)
        data = simulator.allocate(256)
        simulator.write(data, struct.pack("<32Q", *values))
        outcome = simulator.launch("k", (1, 1, 1), (32, 1, 1), [struct.pack("<Q", data)])
        assert outcome, outcome.message
        assert simulator.take_findings() == ()
        words = struct.unpack("<64I", simulator.read(data, 256))
    return {lane: (words[2 * lane], words[2 * lane + 1]) for lane in lanes(members)}


def lanes(members: int) -> list[int]:
    return [lane for lane in range(32) if members >> lane & 1]


def source(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """The lane that shfl reads, and whether that lies in the segment."""
    clamp, segment = c & 31, c >> 8 & 31
    last = lane & segment | clamp & ~segment & 31
    j = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": lane & segment | b & ~segment & 31}[mode]
    inside = j >= last if mode == "up" else j <= last
    return (j if inside else lane), inside


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles_read_within_their_segment(mode: str) -> None:
    for segment in (0x00, 0x10, 0x18, 0x1F):
        for clamp in (0, 31, 20):
            c = segment << 8 | clamp
            body = f"and.b32 %m, %a, 31; shfl.sync.{mode}.b32 %d|%p, %a, %m, {c}, -1;"
            expected = {}
            for lane in range(32):
                j, inside = source(mode, lane, VALUES[lane] & 31, c)
                expected[lane] = (VALUES[j], int(inside))
            assert results(body, VALUES, FULL) == expected, f"{segment:#x} {clamp}"


def test_shuffles_of_some_lanes() -> None:
    members = 0xF0F0F0F0
    got = results(f"shfl.sync.bfly.b32 %d|%p, %a, 1, 31, {members};", VALUES, members)
    assert got == {lane: (VALUES[lane ^ 1], 1) for lane in lanes(members)}


def test_a_lane_that_takes_no_part_has_nothing_to_give() -> None:
    """Who asks it keeps the own value."""
    members = 0xFFFF
    got = results(f"shfl.sync.down.b32 %d|%p, %a, 8, 31, {members};", VALUES, members)
    assert got == {lane: (VALUES[lane + 8 if lane < 8 else lane], 1) for lane in range(16)}


@pytest.mark.parametrize("members", MASKS, ids=hex)
@pytest.mark.parametrize("values", [VALUES, [1] * 32, [0] * 32], ids=["mixed", "all", "none"])
def test_votes(members: int, values: list[int]) -> None:
    yes = {lane for lane in lanes(members) if 0 < values[lane] < 1 << 31}
    told = {
        "all": len(yes) == len(lanes(members)),
        "any": bool(yes),
        "uni": len(yes) in {0, len(lanes(members))},
    }
    for name, expected in told.items():
        got = results(f"vote.sync.{name}.pred %p, %q, {members};", values, members)
        assert {p for _, p in got.values()} == {int(expected)}, name
    got = results(f"vote.sync.ballot.b32 %d, %q, {members};", values, members)
    assert got == results(f"vote.ballot.sync.b32 %d, %q, {members};", values, members)
    assert {d for d, _ in got.values()} == {sum(1 << lane for lane in yes)}
    got = results("activemask.b32 %d;", values, members)
    assert {d for d, _ in got.values()} == {members}


@pytest.mark.parametrize("members", MASKS, ids=hex)
@pytest.mark.parametrize(("kind", "register"), [("b32", "%a"), ("b64", "%w")])
def test_matches(members: int, kind: str, register: str) -> None:
    wide = [value << (32 if kind == "b64" else 0) for value in FEW]
    got = results(f"match.any.sync.{kind} %d, {register}, {members};", wide, members)
    for lane, (d, _) in got.items():
        assert d == sum(1 << other for other in lanes(members) if wide[other] == wide[lane])
    for values in (wide, [wide[3]] * 32):
        got = results(f"match.all.sync.{kind} %d|%p, {register}, {members};", values, members)
        same = len({values[lane] for lane in lanes(members)}) == 1
        assert set(got.values()) == {(members if same else 0, int(same))}


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


REDUCTIONS: dict[str, Callable[[int, int], int]] = {
    "add.u32": lambda a, b: a + b,
    "add.s32": lambda a, b: a + b,
    "min.u32": min,
    "max.u32": max,
    "min.s32": lambda a, b: min(a, b, key=signed),
    "max.s32": lambda a, b: max(a, b, key=signed),
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("members", MASKS, ids=hex)
def test_reductions(members: int) -> None:
    for name, operation in REDUCTIONS.items():
        got = results(f"redux.sync.{name} %d, %a, {members};", VALUES, members)
        expected = reduce(operation, (VALUES[lane] for lane in lanes(members))) & FULL
        assert {d for d, _ in got.values()} == {expected}, name


DIVERGED = (
    HEADER
    + """
.visible .entry k(.param .u64 data) {
  .reg .b32 %l, %m; .reg .b64 %i, %x; .reg .pred %p;
  ld.param.u64 %x, [data];
  mov.u32 %l, %laneid;
  mad.wide.u32 %i, %l, 4, %x;
  setp.lt.u32 %p, %l, 5;
  @%p bra JOIN;
  st.global.u32 [%i], %l;
JOIN:
  CONVERGE
  activemask.b32 %m;
  st.global.u32 [%i], %m;
  ret;
}"""
)


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("converge", ["", "bar.warp.sync 0xffffffff;", "barrier.sync 0;"])
def test_lanes_that_went_apart_are_active_together_once_something_makes_them_converge(
    order: Order, converge: str
) -> None:
    """Nothing promises that they do behind a branch; in the reversed order they do not."""
    with Simulator(Options(order=order)) as simulator:
        simulator.load_ptx(DIVERGED.replace("CONVERGE", converge))
        data = simulator.allocate(128)
        assert simulator.launch("k", (1, 1, 1), (32, 1, 1), [struct.pack("<Q", data)])
        active = struct.unpack("<32I", simulator.read(data, 128))
    apart = order == Order.REVERSED and not converge
    assert active == ((31,) * 5 + (FULL ^ 31,) * 27 if apart else (FULL,) * 32)


def test_lanes_behind_a_branch_that_others_do_not_take_may_part() -> None:
    source = DIVERGED.replace("bra JOIN", "bra END").replace("  ret;", "END:\n  ret;").replace("CONVERGE", "")
    with Simulator(Options(order=Order.REVERSED)) as simulator:
        simulator.load_ptx(source)
        data = simulator.allocate(128)
        simulator.write(data, bytes(128))
        assert simulator.launch("k", (1, 1, 1), (32, 1, 1), [struct.pack("<Q", data)])
        active = struct.unpack("<32I", simulator.read(data, 128))
    assert not any(active[:5])
    assert all(mask >> lane & 1 for lane, mask in enumerate(active[5:], 5))
    assert len(set(active[5:])) > 1
    assert sum(set(active[5:])) == FULL ^ 31, "each lane is in one group"
