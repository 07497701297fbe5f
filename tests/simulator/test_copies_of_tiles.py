"""Threads that hold a copy of a small tile, as Triton lays it out: a race counts if what they load counts.

Blocks of 128 threads; %t is the thread, %a the array in place, %b the thread's own place in another one.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from grader.simulator.driver import Options, Order, Simulator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grader.records.findings import Finding

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.file 1 "{file}"
.visible .entry k(.param .u64 array, .param .u64 out)
{{
  .reg .b32 %r<8>, %t; .reg .b64 %a, %b, %c; .reg .pred %p<4>;
  .shared .align 4 .b8 room[512];
  .loc 1 1 0
  mov.u32 %t, %tid.x;
  ld.param.u64 %a, [array];
  ld.param.u64 %b, [out];
  mad.wide.u32 %b, %t, 4, %b;
  {body}
  ret;
}}
"""
LOAD, STORE = "\n.loc 1 7 0\n", "\n.loc 1 9 0\n"
SCALAR = f"{LOAD} ld.global.u32 %r1, [%a]; add.u32 %r1, %r1, 1; setp.eq.u32 %p1, %t, 0;"
STORE_SCALAR = f"{STORE} @%p1 st.global.u32 [%a], %r1;"
TILE = "and.b32 %r2, %t, 15; mad.wide.u32 %c, %r2, {apart}, %a; setp.lt.u32 %p1, %t, 16;"
UPDATE = f"{LOAD} ld.global.u32 %r1, [%c]; add.u32 %r1, %r1, 1; {STORE} @%p1 st.global.u32 [%c], %r1;"
REVERSED = f"sub.u32 %r3, 15, %r2; mad.wide.u32 %b, %r3, 4, %a; {LOAD} ld.global.u32 %r1, [%b];"

HARMLESS = {
    "what lanes have rounded differently": "and.b32 %r2, %t, 96; mov.u32 %r3, room; add.u32 %r3, %r3, %r2;"
    "st.shared.u32 [%r3], %t;",
    "what warps have rounded differently": "st.shared.u32 [room], %t;",
    "a number": SCALAR + STORE_SCALAR,
    "a number, twice": (SCALAR + STORE_SCALAR) * 2,
    "a tile": TILE.format(apart=4) + UPDATE,
    "a tile of wide steps": TILE.format(apart=64) + UPDATE,
    "its sum in every warp": TILE.format(apart=4)
    + f"{LOAD} ld.global.u32 %r1, [%c]; shfl.sync.bfly.b32 %r3, %r1, 8, 31, -1; add.u32 %r1, %r1, %r3;"
    + f"{STORE} @%p1 st.global.u32 [%c], %r1;",
}
HARMFUL = {
    "a number, if it is what it was": f"{SCALAR} setp.ne.u32 %p2, %r1, 6; @%p2 bra L; {STORE_SCALAR} L:",
    "a number that all threads use": f"{SCALAR} {STORE_SCALAR} st.global.u32 [%b], %r1;",
    "a number that all threads had used": f"{SCALAR} st.global.u32 [%b], %r1; {STORE_SCALAR}",
    "a number that says where": f"{SCALAR} mad.wide.u32 %b, %r1, 4, %b; {STORE_SCALAR}"
    "st.global.u32 [%b], %t;",
    "a number that says whether": f"{SCALAR} setp.eq.u32 %p2, %r1, 6; {STORE_SCALAR}"
    "@%p2 st.global.u32 [%b], %t;",
    "a number that all threads pass on": f"{SCALAR} mov.u32 %r2, room; mad.lo.u32 %r2, %t, 4, %r2;"
    f"{STORE_SCALAR} st.shared.u32 [%r2], %r1;",
    "a number that a warp passes on": f"{SCALAR} and.b32 %r2, %t, 31; setp.eq.u32 %p2, %r2, 5; {STORE_SCALAR}"
    "shfl.sync.idx.b32 %r3, %r1, 31, 31, -1; @%p2 st.global.u32 [%b], %r3;",
    "a branch that all threads take": f"{SCALAR} setp.eq.u32 %p2, %r1, 6; {STORE_SCALAR} @!%p2 bra L;"
    "st.global.u32 [%b], %t; L:",
    "a tile, the other way round": TILE.format(apart=4) + REVERSED + f"{STORE} @%p1 st.global.u32 [%c], %r1;",
}


@pytest.fixture(scope="module", params=[Order.PROGRAM, Order.REVERSED])
def simulator(request: pytest.FixtureRequest) -> Iterator[Simulator]:
    with Simulator(Options(order=request.param), device_bytes=1 << 28, shared_bytes=1 << 20) as device:
        yield device


def findings(simulator: Simulator, body: str, file: str = "/kernels.py") -> tuple[Finding, ...]:
    simulator.reset()
    simulator.load_ptx(KERNEL.format(file=file, body=body))
    array, out = simulator.allocate(1024), simulator.allocate(1024)
    simulator.fill(array, 0, 1024)
    simulator.write(array, struct.pack("<I", 5))
    outcome = simulator.launch(
        "k", (1, 1, 1), (128, 1, 1), [struct.pack("<Q", address) for address in (array, out)]
    )
    assert outcome, outcome.message
    return simulator.take_findings()


@pytest.mark.parametrize("body", HARMLESS.values(), ids=HARMLESS)
def test_a_copy_that_decides_nothing_is_no_race(simulator: Simulator, body: str) -> None:
    assert findings(simulator, body) == ()
    assert findings(simulator, body, "/kernels.cu")


@pytest.mark.parametrize("body", HARMFUL.values(), ids=HARMFUL)
def test_a_copy_that_decides_something_is_a_race(simulator: Simulator, body: str) -> None:
    found = findings(simulator, body)
    assert {finding.kind for finding in found} == {"race_global"}
    assert all({place.line for place in finding.places} == {7, 9} for finding in found)
