"""How the engine runs PTX: divergence, barriers, schedules, refusals, budgets."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from grader.records.sentences import sentence
from grader.simulator.driver import Options, Order, RefusedError, Simulator

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
# Threads store what a body leaves in %r to their place of the output.
FRAME = """
.visible .entry {name}(.param .u64 out)
{{
  .reg .b32 %r, %s, %t, %u; .reg .b64 %a, %b; .reg .pred %p, %q;
  .shared .align 4 .b8 room[4096];
  mov.u32 %t, %tid.x;
  {body}
  mov.u32 %s, %ctaid.x;
  mov.u32 %u, %ntid.x;
  mad.lo.u32 %s, %s, %u, %t;
  ld.param.u64 %a, [out];
  mad.wide.u32 %b, %s, 4, %a;
  st.global.u32 [%b], %r;
  ret;
}}
"""


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with Simulator(Options(), device_bytes=1 << 28, shared_bytes=1 << 20) as device:
        yield device


def results(
    simulator: Simulator, body: str, threads: int = 32, blocks: int = 1, before: str = ""
) -> list[int]:
    simulator.reset()
    simulator.load_ptx(HEADER + before + FRAME.format(name="k", body=body))
    out = simulator.allocate(4 * threads * blocks)
    outcome = simulator.launch("k", (blocks, 1, 1), (threads, 1, 1), [struct.pack("<Q", out)])
    assert outcome, outcome.message
    return list(struct.unpack(f"<{threads * blocks}I", simulator.read(out, 4 * threads * blocks)))


def kinds(simulator: Simulator) -> list[str]:
    return [f.kind for f in simulator.take_findings()]


def test_lanes_loop_as_often_as_each_wants(simulator: Simulator) -> None:
    body = """
    mov.u32 %r, 0; mov.u32 %s, 0;
    L: add.u32 %r, %r, %s; add.u32 %s, %s, 1; setp.le.u32 %p, %s, %t; @%p bra L;
    """
    assert results(simulator, body) == [sum(range(t + 1)) for t in range(32)]


def test_a_table_of_branches_takes_every_lane_to_its_own(simulator: Simulator) -> None:
    body = """
    ts: .branchtargets A, B, C;
    and.b32 %s, %t, 3;
    mov.u32 %r, 0;
    brx.idx %s, ts;
    A: mov.u32 %r, 10; bra.uni D;
    B: mov.u32 %r, 20; bra.uni D;
    C: mov.u32 %r, 30;
    D:
    """
    assert results(simulator, body) == [(10, 20, 30, 30)[t & 3] for t in range(32)]


def test_a_copy_in_a_loop_is_not_its_source(simulator: Simulator) -> None:
    body = """
    mov.u32 %r, 7; mov.u32 %s, 0;
    L: mov.u32 %u, %r; add.u32 %r, %r, 1; add.u32 %s, %s, 1; setp.lt.u32 %p, %s, 5; @%p bra L;
    mov.u32 %r, %u;
    """
    assert results(simulator, body) == [11] * 32


def test_a_lock_inside_a_warp_lets_everybody_through(simulator: Simulator) -> None:
    lock = ".global .align 4 .u32 lock;\n.global .align 4 .u32 sum;\n"
    body = """
    mov.u64 %a, lock; mov.u64 %b, sum;
    AGAIN: atom.global.cas.b32 %s, [%a], 0, 1; setp.ne.u32 %p, %s, 0; @%p bra AGAIN;
    ld.volatile.global.u32 %r, [%b]; add.u32 %r, %r, 1; st.volatile.global.u32 [%b], %r; membar.gl;
    atom.global.exch.b32 %s, [%a], 0;
    """
    assert sorted(results(simulator, body, threads=64, before=lock)) == list(range(1, 65))


@pytest.mark.parametrize("order", [Order.PROGRAM, Order.REVERSED, Order.SHUFFLED])
@pytest.mark.parametrize("threads", [1, 2])
def test_blocks_may_wait_for_their_neighbours(order: Order, threads: int) -> None:
    flags = ".global .align 4 .b8 flags[1024];\n"
    body = """
    mov.u64 %a, flags; mov.u32 %s, %ctaid.x; mad.wide.u32 %b, %s, 4, %a;
    mov.u32 %r, 0; setp.eq.u32 %p, %s, 0; @%p bra FIRST;
    WAIT: ld.acquire.gpu.global.u32 %r, [%b+-4]; setp.eq.u32 %q, %r, 0; @%q bra WAIT;
    FIRST: add.u32 %r, %r, 1; st.release.gpu.global.u32 [%b], %r;
    """
    with Simulator(
        Options(order=order, seed=3, threads=threads), device_bytes=1 << 28, shared_bytes=1 << 20
    ) as device:
        assert results(device, body, threads=1, blocks=200, before=flags) == list(range(1, 201))
        assert kinds(device) == []


@pytest.mark.parametrize(("order", "stays"), [(Order.PROGRAM, "last"), (Order.REVERSED, "first")])
@pytest.mark.parametrize("lanes", [2, 32])
@pytest.mark.parametrize("store", ["st.global.u32 [%b], %t", "st.global.v2.u32 [%b], {%t, %t}"])
def test_of_lanes_that_store_to_one_place_the_order_decides_whose_value_stays(
    order: Order, stays: str, lanes: int, store: str
) -> None:
    place = ".global .align 8 .b8 place[256];\n"
    body = f"""
    mov.u64 %a, place; div.u32 %s, %t, {lanes}; mad.wide.u32 %b, %s, 8, %a;
    {store}; bar.warp.sync -1; ld.global.u32 %r, [%b];
    """
    with Simulator(Options(order=order, threads=1), device_bytes=1 << 28, shared_bytes=1 << 20) as device:
        found = results(device, body, before=place)
    which = lanes - 1 if stays == "last" else 0
    assert found == [t // lanes * lanes + which for t in range(32)]


@pytest.mark.parametrize(("order", "first"), [(Order.PROGRAM, "lowest"), (Order.REVERSED, "highest")])
@pytest.mark.parametrize("space", ["global", "shared"])
def test_of_lanes_that_change_one_place_by_atomics_the_order_decides_who_comes_first(
    order: Order, first: str, space: str
) -> None:
    body = f"""
    mov.u64 %a, {"room" if space == "shared" else "counter"};
    atom.{space}.exch.b32 %r, [%a], 0; bar.warp.sync -1;
    atom.{space}.add.u32 %r, [%a], 1;
    """
    with Simulator(Options(order=order, threads=1), device_bytes=1 << 28, shared_bytes=1 << 20) as device:
        ranks = results(device, body, before=".global .align 4 .u32 counter;\n")
    assert ranks == (list(range(32)) if first == "lowest" else list(range(31, -1, -1)))


def test_barriers_count_and_reduce(simulator: Simulator) -> None:
    body = """
    setp.lt.u32 %p, %t, 10;
    bar.red.popc.u32 %r, 0, %p;
    bar.red.or.pred %q, 0, %p; selp.u32 %s, 100, 0, %q; add.u32 %r, %r, %s;
    bar.red.and.pred %q, 0, %p; selp.u32 %s, 1000, 0, %q; add.u32 %r, %r, %s;
    """
    assert results(simulator, body, threads=96) == [110] * 96


def test_half_of_the_block_meets_at_a_named_barrier(simulator: Simulator) -> None:
    body = """
    mov.u32 %r, 5; shl.b32 %s, %t, 2; mov.u32 %u, room; add.u32 %s, %s, %u;
    setp.ge.u32 %p, %t, 64; @%p bra OUT;
    st.shared.u32 [%s], %t; bar.sync 1, 64; xor.b32 %u, %s, 128; ld.shared.u32 %r, [%u];
    OUT:
    """
    assert results(simulator, body, threads=128) == [t ^ 32 for t in range(64)] + [5] * 64
    assert kinds(simulator) == []


def test_functions_call_themselves_and_through_pointers(simulator: Simulator) -> None:
    before = """
    .func (.param .b32 ret) sum(.param .b32 n) {
      .reg .b32 %n, %m; .reg .pred %p; .param .b32 x; .param .b32 y;
      ld.param.u32 %n, [n]; mov.u32 %m, 0; setp.eq.u32 %p, %n, 0; @%p bra END;
      sub.u32 %m, %n, 1; st.param.b32 [x], %m; call.uni (y), sum, (x); ld.param.b32 %m, [y];
      END: add.u32 %m, %m, %n; st.param.b32 [ret], %m; ret; }
    .func (.param .b32 ret) double(.param .b32 n) {
      .reg .b32 %n; ld.param.u32 %n, [n]; add.u32 %n, %n, %n; st.param.b32 [ret], %n; ret; }
    .global .align 8 .u64 functions[2] = {sum, double};
    """
    body = """
    .param .b32 x; .param .b32 y;
    mov.u64 %a, functions; and.b32 %s, %t, 1; mad.wide.u32 %b, %s, 8, %a; ld.global.u64 %a, [%b];
    st.param.b32 [x], %t; P: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (y), %a, (x), P; ld.param.b32 %r, [y];
    """
    assert results(simulator, body, before=before) == [
        2 * t if t & 1 else t * (t + 1) // 2 for t in range(32)
    ]


def test_an_unknown_instruction_refuses_its_kernel_alone(simulator: Simulator) -> None:
    simulator.reset()
    unknown = '.file 1 "new.cu"\n' + FRAME.format(name="bad", body=".loc 1 42 0\nfuture.add.u32 %r, %t, %t;")
    simulator.load_ptx(HEADER + unknown + FRAME.format(name="good", body="mov.u32 %r, %t;"))
    out = struct.pack("<Q", simulator.allocate(128))
    assert simulator.launch("good", (1, 1, 1), (32, 1, 1), [out])
    with pytest.raises(RefusedError, match=r"future\.add\.u32 %r, %t, %t.*new\.cu:42.*bad"):
        simulator.launch("bad", (1, 1, 1), (32, 1, 1), [out])


def test_textures_refuse_their_kernel_by_name(simulator: Simulator) -> None:
    texture = """
    .visible .entry textured(.param .u64 t)
    {
      .reg .b64 %t; .reg .b32 %i, %v<4>;
      ld.param.u64 %t, [t];
      mov.u32 %i, 0;
      tex.1d.v4.f32.s32 {%v0, %v1, %v2, %v3}, [%t, {%i}];
      ret;
    }
    """
    assert results(simulator, "mov.u32 %r, 7;", before=texture) == [7] * 32
    with pytest.raises(RefusedError, match=r"tex\.1d\.v4\.f32\.s32"):
        simulator.launch("textured", (1, 1, 1), (32, 1, 1), [struct.pack("<Q", 0)])


def test_an_endless_loop_ends_with_the_budget() -> None:
    with Simulator(Options(instruction_budget=100_000), device_bytes=1 << 28, shared_bytes=1 << 20) as device:
        device.load_ptx(HEADER + FRAME.format(name="k", body="mov.u32 %r, 0; L: add.u32 %r, %r, 1; bra L;"))
        outcome = device.launch("k", (1, 1, 1), (32, 1, 1), [struct.pack("<Q", device.allocate(128))])
        assert outcome.fault == "cudaErrorLaunchTimeout"
        assert kinds(device) == ["budget"]


def test_lines_of_inlined_code_are_the_user_s() -> None:
    body = """
    .loc 1 7 0
    .loc 2 99 3, function_name $n, inlined_at 1 7 0
    ld.param.u64 %a, [out]; st.global.u32 [%a+1024], %t; mov.u32 %r, 0;
    """
    files = '.file 1 "kernel.cu"\n.file 2 "/opt/cuda/targets/x86_64-linux/include/cub/block.cuh"\n'
    with Simulator(Options(), device_bytes=1 << 28, shared_bytes=1 << 20) as device:
        device.load_ptx(HEADER + files + FRAME.format(name="k", body=body))
        assert device.launch("k", (1, 1, 1), (32, 1, 1), [struct.pack("<Q", device.allocate(128))])
        (finding,) = device.take_findings()
        assert (finding.kind, finding.file, finding.line) == ("global_oob", "kernel.cu", 7)
        assert "896 bytes behind the end of an allocation of 128 bytes" in str(sentence(finding))


@pytest.mark.parametrize(
    ("access", "said"),
    [
        ("ld.global.u32 %r, [%b];", "reads 4 bytes of global memory"),
        ("st.global.u32 [%b], %t;", "writes 4 bytes of global memory"),
        ("st.u32 [%b], %t;", "writes 4 bytes of global memory"),
        ("st.shared.v2.u32 [%s+4096], {%t, %t};", "writes 8 bytes of shared memory"),
        ("cp.async.ca.shared.global [%s+4096], [%a], 4;", "writes 4 bytes of shared memory"),
        ("cp.async.ca.shared.global [%s], [%b], 4;", "reads 4 bytes of global memory"),
        ("atom.global.add.u32 %r, [%b], %t;", "updates 4 bytes of global memory"),
        ("wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%b], {%t, %t, %t, %t};", "writes 4 bytes"),
    ],
)
def test_an_access_out_of_bounds_tells_a_read_from_a_write(access: str, said: str) -> None:
    body = f"mov.u32 %r, 0; ld.param.u64 %a, [out]; mov.u32 %s, room; add.u64 %b, %a, 33554432;\n{access}"
    with Simulator(Options(), device_bytes=1 << 28, shared_bytes=1 << 20) as device:
        device.load_ptx(HEADER + FRAME.format(name="k", body=body))
        outcome = device.launch("k", (1, 1, 1), (32, 1, 1), [struct.pack("<Q", device.allocate(128))])
        assert said in outcome.message
        assert said in next(str(sentence(one)) for one in device.take_findings() if one.tool == "memcheck")


def test_warps_that_wait_in_turn_take_little_of_the_budget() -> None:
    body = """
  st.shared.u32 [room], 0;
  bar.sync 0;
  shr.u32 %s, %t, 5;
WAIT:
  ld.volatile.shared.u32 %r, [room];
  setp.ne.u32 %q, %r, %s;
  @%q bra WAIT;
  bar.warp.sync -1;
  add.u32 %r, %s, 1;
  st.volatile.shared.u32 [room], %r;
  add.u32 %s, %s, 2;
  setp.lt.u32 %q, %s, 200;
  @%q bra WAIT;
"""
    with Simulator(Options(instruction_budget=80_000), device_bytes=1 << 28, shared_bytes=1 << 20) as device:
        assert results(device, body, threads=64) == [199] * 32 + [200] * 32
