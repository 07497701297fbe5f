"""mbarrier: phases, counts and parities, one lane after another."""

from __future__ import annotations

import struct

import pytest

from grader.simulator.driver import Options, RefusedError, Simulator

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


def results(body: str, threads: int, count: int, budget: int = 1_000_000) -> list[tuple[int, ...]]:
    """What each thread leaves in %x0 and the next registers; the barrier at [bar] expects ``threads``."""
    stores = "".join(f"st.global.u32 [%a+{4 * n}], %x{n};" for n in range(count))
    ptx = f"""
.visible .entry k(.param .u64 out) {{
  .reg .b32 %t, %x<8>; .reg .b64 %a, %b, %s<4>; .reg .pred %p<8>;
  .shared .align 8 .b64 bar;
  mov.u32 %t, %tid.x;
  setp.eq.u32 %p7, %t, 0;
  @%p7 mbarrier.init.shared.b64 [bar], {threads};
  bar.sync 0;
  {body}
  ld.param.u64 %b, [out];
  mad.wide.u32 %a, %t, {4 * count}, %b;
  {stores}
  ret;
}}"""
    options = Options(threads=1, instruction_budget=budget)
    with Simulator(options, device_bytes=1 << 22, shared_bytes=1 << 16) as simulator:
        simulator.load_ptx(HEADER + ptx)
        out = simulator.allocate(4 * count * threads)
        outcome = simulator.launch("k", (1, 1, 1), (threads, 1, 1), [struct.pack("<Q", out)])
        assert outcome, outcome.message
        assert simulator.take_findings() == ()
        words = struct.unpack(f"<{count * threads}I", simulator.read(out, 4 * count * threads))
    return [words[n : n + count] for n in range(0, len(words), count)]


def flags(*predicates: str) -> str:
    return "".join(f"selp.u32 %x{n}, 1, 0, {p};" for n, p in enumerate(predicates))


def test_a_phase_completes_with_the_last_arrival() -> None:
    body = f"""
  mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0;
  bar.sync 0;
  mbarrier.arrive.shared.b64 %s0, [bar];
  bar.sync 0;
  mbarrier.test_wait.shared.b64 %p2, [bar], %s0;
  mbarrier.test_wait.parity.shared.b64 %p3, [bar], 0;
  mbarrier.test_wait.parity.shared.b64 %p4, [bar], 1;
  {flags("%p1", "%p2", "%p3", "%p4")}
"""
    assert results(body, 64, 4) == [(0, 1, 1, 0)] * 64


def test_a_warp_that_waits_lets_others_run_soon() -> None:
    body = """
  mov.u32 %x0, 0;
round:
  mbarrier.arrive.shared.b64 %s0, [bar];
again:
  mbarrier.test_wait.shared.b64 %p1, [bar], %s0;
  @!%p1 bra again;
  add.u32 %x0, %x0, 1;
  setp.lt.u32 %p2, %x0, 100;
  @%p2 bra round;
"""
    assert results(body, 128, 1, budget=10_000) == [(100,)] * 128


def test_states_count_what_is_pending() -> None:
    body = """
  mbarrier.arrive.shared.b64 %s0, [bar];
  mbarrier.pending_count.b64 %x0, %s0;
"""
    assert sorted(results(body, 32, 1)) == [(n,) for n in range(1, 33)]


def test_one_phase_after_another() -> None:
    body = f"""
  mov.u32 %x4, 0;
L:
  mbarrier.arrive.release.cta.shared::cta.b64 %s0, [bar];
W:
  mbarrier.try_wait.shared.b64 %p1, [bar], %s0;
  @!%p1 bra W;
  add.u32 %x4, %x4, 1;
  setp.lt.u32 %p2, %x4, 5;
  @%p2 bra L;
  bar.sync 0;
  mbarrier.test_wait.parity.shared.b64 %p3, [bar], 0;
  {flags("%p3")}
"""
    assert results(body, 96, 1) == [(1,)] * 96  # the sixth phase is an odd one


def test_who_drops_out_is_not_expected_again() -> None:
    body = f"""
  setp.ge.u32 %p1, %t, 16;
  @%p1 mbarrier.arrive_drop.shared.b64 %s0, [bar];
  @!%p1 mbarrier.arrive.shared.b64 %s0, [bar];
  bar.sync 0;
  @!%p1 mbarrier.arrive.shared.b64 %s1, [bar];
  @%p1 mov.b64 %s1, %s0;
  bar.sync 0;
  mbarrier.test_wait.parity.shared.b64 %p2, [bar], 1;
  {flags("%p2")}
"""
    assert results(body, 32, 1) == [(1,)] * 32


def test_arrivals_may_count_for_several() -> None:
    body = f"""
  @%p7 mbarrier.arrive.noComplete.shared.b64 %s0, [bar], 31;
  bar.sync 0;
  mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0;
  bar.sync 0;
  @%p7 mbarrier.arrive.shared.b64 _, [bar];
  bar.sync 0;
  mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;
  {flags("%p1", "%p2")}
"""
    assert results(body, 32, 2) == [(0, 1)] * 32


def test_copies_hold_a_phase_back_or_count_themselves() -> None:
    body = f"""
  ld.param.u64 %b, [out];
  cp.async.mbarrier.arrive.shared.b64 [bar];
  bar.sync 0;
  mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0;
  bar.sync 0;
  cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
  bar.sync 0;
  mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;
  {flags("%p1", "%p2")}
"""
    assert results(body, 32, 2) == [(0, 1)] * 32


def test_memory_of_an_invalid_barrier_is_memory_again() -> None:
    body = """
  bar.sync 0;
  @%p7 mbarrier.inval.shared.b64 [bar];
  bar.sync 0;
  @%p7 st.shared.u64 [bar], 7;
  bar.sync 0;
  ld.shared.u32 %x0, [bar];
"""
    assert results(body, 64, 1) == [(7,)] * 64


def test_what_later_devices_add_is_refused_by_name() -> None:
    with pytest.raises(RefusedError, match=r"expect_tx"):
        results("mbarrier.arrive.expect_tx.shared.b64 %s0, [bar], 16;", 32, 1)
