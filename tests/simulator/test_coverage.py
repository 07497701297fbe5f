"""What the simulator tells of the ways that code goes and of the numbers that it compares."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from grader.records.coverage import Coverage, Launches, Met, Side, Site, Way
from grader.records.findings import Line
from grader.simulator.driver import Options, Simulator

if TYPE_CHECKING:
    from collections.abc import Iterator

BELOW, EQUAL, ABOVE = Side
KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u32 n) {{
  .reg .b32 %n, %t, %r; .reg .b64 %w; .reg .pred %p, %q;
  .loc 1 7 0
  ld.param.u32 %n, [n];
  mov.u32 %t, %tid.x;
  {body}
  ret;
}}
.file 1 "kernel.cu"
"""


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with Simulator(Options(coverage=True), device_bytes=1 << 28, shared_bytes=1 << 20) as device:
        yield device


def covered(simulator: Simulator, body: str, *numbers: int, threads: int = 32, blocks: int = 1) -> Coverage:
    simulator.reset()
    simulator.load_ptx(KERNEL.format(body=body))
    for number in numbers:
        arguments = [struct.pack("<I", number % (1 << 32))]
        outcome = simulator.launch("k", (blocks, 1, 1), (threads, 1, 1), arguments)
        assert outcome, outcome.message
    return simulator.take_coverage()


def met(simulator: Simulator, body: str, *numbers: int, threads: int = 32) -> Met:
    (one,) = covered(simulator, body, *numbers, threads=threads).comparisons.values()
    return one


def test_a_comparison_tells_its_sides_and_the_extremes_of_both_numbers(simulator: Simulator) -> None:
    body = "setp.lt.s32 %p, %t, 5;"
    assert met(simulator, body, 0) == Met(frozenset(Side), (0, 31), (5, 5))
    assert met(simulator, body, 0, threads=5) == Met(frozenset({BELOW}), (0, 4), (5, 5))
    assert met(simulator, body, 0, threads=6) == Met(frozenset({BELOW, EQUAL}), (0, 5), (5, 5))


def test_launches_add_up(simulator: Simulator) -> None:
    body = "setp.le.s32 %p, %n, 70;"
    assert met(simulator, body, 3, 69) == Met(frozenset({BELOW}), (3, 69), (70, 70))
    assert met(simulator, body, 71, 70) == Met(frozenset({EQUAL, ABOVE}), (70, 71), (70, 70))


@pytest.mark.parametrize(
    ("kind", "low", "high", "sides"),
    [("s32", -1, 3, {BELOW, ABOVE}), ("u32", 3, (1 << 32) - 1, {ABOVE})],
)
def test_signs_count(simulator: Simulator, kind: str, low: int, high: int, sides: set[Side]) -> None:
    assert met(simulator, f"setp.lt.{kind} %p, %n, 1;", 3, -1) == Met(frozenset(sides), (low, high), (1, 1))


def test_wide_numbers_and_halves_keep_their_values(simulator: Simulator) -> None:
    wide = "mul.wide.u32 %w, %n, %n; setp.gt.u64 %p, %w, 4294967296;"
    assert met(simulator, wide, 70_000).first == (4_900_000_000, 4_900_000_000)
    short = "{ .reg .b16 %h; cvt.s16.s32 %h, %n; setp.lt.s16 %p, %h, 4; }"
    assert met(simulator, short, -300).first == (-300, -300)


def test_equality_is_told_from_order(simulator: Simulator) -> None:
    assert met(simulator, "setp.eq.s32 %p, %n, 9;", 9).equality
    assert not met(simulator, "setp.ge.s32 %p, %n, 9;", 9).equality


def test_the_smaller_of_two_is_a_comparison(simulator: Simulator) -> None:
    assert met(simulator, "min.s32 %r, %n, 4096;", 5000) == Met(
        frozenset({ABOVE}), (5000, 5000), (4096, 4096)
    )


def test_lanes_that_do_not_take_part_are_not_met(simulator: Simulator) -> None:
    body = "setp.lt.s32 %p, %t, 8; @%p setp.lt.s32 %q, %t, 20;"
    first, second = covered(simulator, body, 0).comparisons.values()
    assert first.first == (0, 31)
    assert second == Met(frozenset({BELOW}), (0, 7), (20, 20))


def test_a_branch_tells_its_ways(simulator: Simulator) -> None:
    body = "setp.lt.s32 %p, %n, 5; @%p bra L; mov.u32 %r, 1; L: add.u32 %r, %r, 1;"

    def ways(*numbers: int) -> frozenset[Way]:
        (one,) = covered(simulator, body, *numbers).ways.values()
        return one

    assert ways(3) == {Way.TAKEN}
    assert ways(5) == {Way.PASSED}
    assert ways(3, 5) == set(Way)


def test_what_was_not_executed_has_gone_no_way(simulator: Simulator) -> None:
    body = "setp.lt.s32 %p, %n, 5; @%p bra L; setp.lt.s32 %q, %n, 9; @%q add.u32 %r, %n, 1; L:"
    coverage = covered(simulator, body, 3)
    assert sorted(map(len, coverage.ways.values())) == [0, 1]
    assert len(coverage.comparisons) == 1


def test_places_and_launches_are_told(simulator: Simulator) -> None:
    coverage = covered(simulator, "setp.lt.s32 %p, %t, 5;", 1, threads=48, blocks=7)
    (site,) = coverage.comparisons
    assert site.kernel == "k"
    assert coverage.lines[site] == Line("kernel.cu", 7)
    assert coverage.launches == {"k": Launches(7, 7, 1, 0, 48, 0)}


def test_nothing_is_told_twice_or_without_being_asked(simulator: Simulator) -> None:
    assert covered(simulator, "setp.lt.s32 %p, %t, 5;", 1).comparisons
    assert simulator.take_coverage() == Coverage()
    simulator.configure(Options())
    assert covered(simulator, "setp.lt.s32 %p, %t, 5;", 1) == Coverage()
    simulator.configure(Options(coverage=True))


def test_what_is_observed_computes_the_same(simulator: Simulator) -> None:
    body = """
    setp.lt.s32 %p, %t, %n;
    selp.b32 %r, 10, 20, %p;
    min.s32 %r, %r, %n;
    setp.eq.s32 %q, %r, {right};
    @%q bra L;
    trap;
    L:
    """
    assert covered(simulator, body.format(right=7), 7).ways
    with pytest.raises(AssertionError, match="trap"):
        covered(simulator, body.format(right=8), 7)


def test_sites_are_the_same_in_every_launch(simulator: Simulator) -> None:
    body = "setp.lt.s32 %p, %n, 5; @%p bra L; setp.eq.s32 %q, %n, 8; L:"
    assert covered(simulator, body, 9).comparisons.keys() > covered(simulator, body, 3).comparisons.keys()
    assert all(isinstance(site, Site) for site in covered(simulator, body, 9).comparisons)
