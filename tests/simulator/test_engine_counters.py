"""What the counters say of accesses whose traffic is known by construction."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from grader.simulator.driver import Options, Simulator

if TYPE_CHECKING:
    from grader.records.findings import LineCount

# One access per kernel, on a line of its own; thread t reads float t * stride of a global buffer, or writes
# word t * stride of shared memory.
TEXT = """
.version 8.0
.target sm_80
.address_size 64
.file 1 "traffic.cu"
.visible .entry global{stride}(.param .u64 data)
{{
  .reg .b32 %r<4>; .reg .b64 %a<4>;
  .loc 1 10 0
  mov.u32 %r0, %tid.x;
  mul.lo.u32 %r1, %r0, {bytes};
  cvt.u64.u32 %a0, %r1;
  ld.param.u64 %a1, [data];
  add.u64 %a2, %a1, %a0;
  .loc 1 20 0
  ld.global.f32 %r2, [%a2];
  .loc 1 0 0
  ret;
}}
.visible .entry shared{stride}(.param .u64 data)
{{
  .shared .align 16 .b8 room[8192];
  .reg .b32 %r<4>; .reg .b64 %a<4>;
  .loc 1 30 0
  mov.u32 %r0, %tid.x;
  mul.lo.u32 %r1, %r0, {bytes};
  mov.u32 %r2, room;
  add.u32 %r1, %r1, %r2;
  .loc 1 40 0
  st.shared.b32 [%r1], %r0;
  .loc 1 50 0
  bar.sync 0;
  ret;
}}
.visible .entry half{stride}(.param .u64 data)
{{
  .reg .b32 %r<4>; .reg .pred %p;
  .loc 1 60 0
  mov.u32 %r0, %tid.x;
  setp.ge.u32 %p, %r0, 16;
  @%p bra DONE;
  .loc 1 70 0
  shfl.sync.down.b32 %r1, %r0, {stride}, 31, 0xffff;
DONE:
  ret;
}}
.visible .entry atomic{stride}(.param .u64 data)
{{
  .reg .b32 %r<4>; .reg .b64 %a<4>; .reg .pred %p;
  .loc 1 80 0
  mov.u32 %r0, %tid.x;
  ld.param.u64 %a1, [data];
  setp.ge.u32 %p, %r0, {stride};
  @%p bra LAST;
  .loc 1 90 0
  red.global.add.u32 [%a1], %r0;
LAST:
  ret;
}}
"""


def counts(kernel: str, stride: int, threads: int = 32) -> dict[int, LineCount]:
    with Simulator(Options(), device_bytes=1 << 28, shared_bytes=1 << 20) as simulator:
        simulator.load_ptx(TEXT.format(stride=stride, bytes=4 * stride))
        data = simulator.allocate(1 << 16)
        simulator.fill(data, 0, 1 << 16)
        assert simulator.launch(f"{kernel}{stride}", (1, 1, 1), (threads, 1, 1), [struct.pack("<Q", data)])
        assert simulator.take_findings() == ()
        return {c.line: c for c in simulator.take_counts()}


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (2, 8), (8, 32), (32, 32), (0, 1)])
def test_sectors_follow_the_stride(stride: int, sectors: int) -> None:
    load = counts("global", stride)[20]
    assert load.file == "traffic.cu"
    assert (load.global_requests, load.global_sectors, load.global_bytes) == (1, sectors, 128)
    assert load.minimal_sectors == (4 if stride else 1)


@pytest.mark.parametrize(("stride", "wavefronts"), [(1, 1), (2, 2), (4, 4), (32, 32), (33, 1)])
def test_wavefronts_follow_the_banks(stride: int, wavefronts: int) -> None:
    store = counts("shared", stride)[40]
    assert (store.shared_requests, store.shared_wavefronts, store.minimal_wavefronts) == (1, wavefronts, 1)


def test_lanes_and_barriers_are_counted() -> None:
    lines = counts("shared", 1, threads=40)
    assert (lines[40].instructions, lines[40].lanes) == (2, 40)
    assert lines[50].barriers == 2
    assert 0 not in lines


@pytest.mark.parametrize(("distance", "lanes"), [(0, 0), (1, 1), (8, 8), (16, 16)])
def test_lanes_that_take_what_their_mask_does_not_name_are_counted(distance: int, lanes: int) -> None:
    assert counts("half", distance)[70].undefined_lanes == lanes


def test_atomics_are_counted_by_lanes() -> None:
    lines = counts("atomic", 5)
    assert (lines[90].atomics, lines[80].atomics) == (5, 0)
