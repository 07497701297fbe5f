"""Feeds the sim PTX that no compiler writes: it must refuse it or run it, and neither die nor hang.

    python tests/simulator/fuzz.py --seconds 60 --seed 1

Modules are kernels of ours with words of others put in, taken out, exchanged or broken, and heaps of words.
"""

from __future__ import annotations

import argparse
import random
import re
import struct
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from grader.records.errors import DeviceError
from grader.simulator.driver import Options, Order, RefusedError, Simulator

INSTRUCTIONS = 20_000  # warp instructions of a launch
SECONDS = 20.0  # a launch of so few that takes longer hangs
WORD = re.compile(r"[%$.\w]+|\s+|.")
NUMBERS = [
    "0",
    "1",
    "-1",
    "3",
    "31",
    "32",
    "33",
    "255",
    "4095",
    "65536",
    "0x7fffffff",
    "0x80000000",
    "0xffffffff",
    "4294967296",
    "0x7fffffffffffffff",
    "-0x8000000000000000",
    "18446744073709551616",
    "0f7fc00000",
    "0f00000000",
    "1e308",
]
HEADER = """.version 8.0
.target sm_80
.address_size 64
"""
SEEDS = [
    """.const .align 4 .b8 table[64] = {1, 2, 3, 4};
.global .align 4 .u32 total = 5;
.func (.param .b32 result) twice(.param .b32 value) {
  .reg .b32 %r<4>;
  ld.param.u32 %r1, [value];
  add.s32 %r2, %r1, %r1;
  st.param.b32 [result], %r2;
  ret;
}
.visible .entry k(.param .u64 data, .param .u32 n) {
  .local .align 16 .b8 __local_depot0[64];
  .reg .b64 %SP, %SPL, %rd<9>;
  .reg .b32 %r<20>;
  .reg .pred %p<4>;
  mov.u64 %SPL, __local_depot0;
  cvta.local.u64 %SP, %SPL;
  ld.param.u64 %rd1, [data];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.s32 %r4, %r2, %r3, %r1;
  mul.wide.u32 %rd2, %r4, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.local.u32 [%SPL + 8], %r4;
  ld.u32 %r5, [%SP + 8];
  {
    .param .b32 param0;
    st.param.b32 [param0], %r5;
    .param .b32 retval0;
    call.uni (retval0), twice, (param0);
    ld.param.b32 %r6, [retval0];
  }
  ld.const.u32 %r7, [table];
  mov.u64 %rd4, total;
  atom.global.add.u32 %r8, [%rd4], %r7;
  setp.lt.u32 %p1, %r1, 9;
  @%p1 bra L1;
  st.global.u32 [%rd3], %r6;
L1:
  @!%p1 st.global.v2.u32 [%rd1 + 512], {%r1, %r2};
  ret;
}
""",
    """.extern .shared .align 16 .b8 more[];
.visible .entry k(.param .u64 data, .param .u32 n) {
  .shared .align 16 .b8 tile[1024];
  .reg .b64 %rd<9>; .reg .b32 %r<20>; .reg .f32 %f<9>; .reg .f64 %d<4>; .reg .b16 %h<8>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [data];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, tile;
  add.s32 %r3, %r3, %r2;
  cvt.rn.f32.u32 %f1, %r1;
  fma.rn.f32 %f2, %f1, 0f40000000, 0f3f800000;
  sqrt.rn.f32 %f3, %f2;
  ex2.approx.ftz.f32 %f4, %f3;
  cvt.f64.f32 %d1, %f4;
  div.rn.f64 %d2, %d1, %d1;
  cvt.rn.f16.f32 %h1, %f2;
  fma.rn.f16 %h2, %h1, %h1, %h1;
  st.shared.f32 [%r3], %f2;
  bar.sync 0;
  ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [tile];
  shfl.sync.bfly.b32 %r8|%p1, %r4, 1, 31, -1;
  vote.sync.ballot.b32 %r9, %p1, -1;
  match.any.sync.b32 %r10, %r9, -1;
  redux.sync.add.s32 %r11, %r10, -1;
  prmt.b32 %r12, %r4, %r5, 0x3210;
  bfe.u32 %r13, %r12, 3, 5;
  popc.b32 %r14, %r13;
  max.u32 %r14, %r14, 1;
  dp4a.u32.u32 %r15, %r4, %r5, %r6;
  add.cc.u32 %r16, %r4, %r5;
  addc.u32 %r17, %r16, 0;
  cp.async.ca.shared.global [%r3], [%rd1], 4;
  cp.async.commit_group;
  cp.async.wait_group 0;
  bar.red.popc.u32 %r18, 0, %p1;
  membar.gl;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  red.global.add.u32 [%rd3], %r18;
LOOP:
  sub.u32 %r14, %r14, 1;
  setp.ne.s32 %p2, %r14, 0;
  @%p2 bra LOOP;
  ret;
}
""",
    """.visible .entry k(.param .u64 data, .param .u32 n) {
  .reg .b32 %r<40>; .reg .f32 %f<20>; .reg .b64 %rd<4>;
  ts: .branchtargets A, B, C;
  ld.param.u64 %rd1, [data];
  mov.u32 %r1, %laneid;
  and.b32 %r2, %r1, 3;
  .reg .pred %p<4>;
  setp.ge.u32 %p1, %r2, 2;
  selp.b32 %r3, %r1, 7, %p1;
  lop3.b32 %r4, %r1, %r2, %r3, 0x96;
  shf.l.wrap.b32 %r5, %r4, %r3, %r2;
  mul.hi.u32 %r6, %r5, %r4;
  div.u32 %r7, %r6, %r3;
  cvt.rzi.s32.f32 %r8, 0f41200000;
  rem.s32 %r9, %r8, %r7;
  atom.global.cas.b32 %r10, [%rd1 + 16], 0, %r9;
  ld.volatile.global.u32 %r11, [%rd1 + 16];
  fence.acq_rel.gpu;
  barrier.sync 1, 32;
  @%p1 vote.sync.any.pred %p2, %p1, 0xcccccccc;
  mov.b64 {%r12, %r13}, %rd1;
  mov.b64 %rd2, {%r12, %r13};
  ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd2];
  brx.idx %r2, ts;
A: activemask.b32 %r15;
B: nanosleep.u32 20;
C: exit;
}
""",
    """.visible .entry k(.param .u64 data, .param .u32 n) {
  .shared .align 32 .b8 tile[2048];
  .reg .b32 %r<40>; .reg .f32 %f<20>; .reg .b64 %rd<9>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [data];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  and.b32 %r3, %r1, 31;
  mad.lo.s32 %r3, %r3, 16, %r2;
  st.shared.v4.u32 [%r3], {%r1, %r1, %r2, %r2};
  add.u32 %r9, %r2, 1024;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared.b64 [%r9], 32;
  bar.sync 0;
  ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r4, %r5, %r6, %r7}, [%r3];
  ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r10, %r11}, [%r3];
  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r4, %r5, %r6, %r7},
    {%r10, %r11}, {%f1, %f2, %f3, %f4};
  mma.sync.aligned.m16n8k16.row.col.satfinite.s32.s8.u8.s32 {%r12, %r13, %r14, %r15}, {%r4, %r5}, {%r6},
    {%r12, %r13, %r14, %r15};
  mov.u32 %r20, 16;
  wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r21, %r22, %r23, %r24, %r25, %r26, %r27, %r28},
    [%rd1], %r20;
  wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 {%r29, %r30, %r31, %r32, %r33, %r34, %r35, %r36},
    [%r2], %r20;
  wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16 {%r4, %r5, %r6, %r7},
    {%r21, %r22, %r23, %r24, %r25, %r26, %r27, %r28}, {%r29, %r30, %r31, %r32, %r33, %r34, %r35, %r36},
    {%r4, %r5, %r6, %r7};
  wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%rd1 + 512], {%r4, %r5, %r6, %r7}, %r20;
  cp.async.cg.shared.global [%r3], [%rd1], 16;
  cp.async.commit_group;
  cp.async.ca.shared.global [%r3], [%rd1 + 16], 8, 4;
  cp.async.mbarrier.arrive.shared.b64 [%r9];
  cp.async.wait_group 1;
  mbarrier.arrive.shared.b64 %rd2, [%r9];
W:
  mbarrier.test_wait.shared.b64 %p2, [%r9], %rd2;
  @!%p2 bra W;
  mbarrier.test_wait.parity.shared.b64 %p3, [%r9], 0;
  mbarrier.arrive.noComplete.shared.b64 %rd3, [%r9], 2;
  mbarrier.arrive_drop.shared.b64 %rd3, [%r9];
  mbarrier.pending_count.b64 %r8, %rd3;
  cp.async.wait_all;
  @%p1 mbarrier.inval.shared.b64 [%r9];
  fence.acq_rel.cta;
  st.volatile.shared.u32 [%r3], %r8;
  ld.volatile.shared.u32 %r8, [%r2];
  atom.acq_rel.cta.shared.add.u32 %r8, [%r2], 1;
  vabsdiff4.u32.u32.u32.add %r8, %r8, %r1, %r2;
  ret;
}
""",
]
WORDS: list[str] = [word for seed in SEEDS for word in WORD.findall(seed) if not word.isspace()]


def alike(word: str, source: random.Random) -> str:
    """Another word of the kind: a register for a register, a number for a number."""
    if word[0].isdigit():
        return source.choice(NUMBERS)
    kind = word[:2] if word[0] == "%" else word[0]
    return source.choice([other for other in WORDS if other.startswith(kind)] or WORDS)


def broken(ptx: str, source: random.Random) -> str:
    """A module with some words changed, most of them into words that may stand there."""
    words = WORD.findall(ptx)
    for _ in range(source.choice((1, 1, 2, 3, 4, 12))):
        named = [n for n, word in enumerate(words) if word[0].isalnum() or word[0] in "%.$_"]
        at = source.choice(named)
        kind = source.randrange(30)
        if kind == 0:
            words[at] = source.choice(WORDS)
        elif kind == 1:
            del words[at]
        elif kind == 2:
            words.insert(at, f" {source.choice(WORDS)} ")
        elif kind == 3:
            words[at:at] = words[source.randrange(len(words)) :][: source.randrange(1, 30)]
        elif kind < 6:
            other = source.choice(named)
            words[at], words[other] = words[other], words[at]
        elif kind < 9:  # an instruction once more, elsewhere
            lines = "".join(words).split("\n")
            lines.insert(source.randrange(1, len(lines)), source.choice(lines))
            words = WORD.findall("\n".join(lines))
        elif "." in words[at] and kind < 15:
            parts, others = words[at].split("."), source.choice(WORDS).split(".")
            parts[source.randrange(len(parts))] = source.choice(others)
            words[at] = ".".join(parts)
        else:
            words[at] = alike(words[at], source)
    return "".join(words)


def module(source: random.Random) -> str:
    """PTX text."""
    kind = source.randrange(10)
    if kind == 0:
        return HEADER + " ".join(source.choices(WORDS + NUMBERS, k=source.randrange(1, 200)))
    if kind == 1:
        text = list(HEADER + source.choice(SEEDS))
        for _ in range(source.randrange(1, 5)):
            text[source.randrange(len(text))] = chr(source.choice((0, 9, 34, 47, 123, 125, 127, 233)))
        return "".join(text)[: source.randrange(1, len(text))]
    return HEADER + broken(source.choice(SEEDS), source)


def attempt(simulator: Simulator, ptx: str, source: random.Random) -> str:
    """Load a module and launch its kernel; returns how that ended: refused, fault or ran.

    Raises:
        DeviceError: the simulator died or hangs.
    """
    simulator.reset()
    checks = source.random() < 0.8
    simulator.configure(
        Options(
            memcheck=checks,
            initcheck=checks,
            racecheck=checks,
            synccheck=checks,
            instruction_budget=INSTRUCTIONS,
            order=source.choice(list(Order)),
            threads=source.choice((1, 2)),
        )
    )
    data = simulator.allocate(4096)
    simulator.fill(data, 0, 2048)
    arguments = [struct.pack("<Q", data), struct.pack("<I", source.randrange(300))]
    grid, block = (source.randrange(1, 5), 1, 1), (source.choice((1, 32, 48, 96)), source.choice((1, 2)), 1)
    try:
        simulator.load_ptx(ptx)
        end = time.monotonic() + SECONDS
        outcome = simulator.launch(
            "k",
            grid,
            block,
            arguments,
            shared=source.choice((0, 256)),
            expired=lambda: time.monotonic() > end,
        )
    except RefusedError:
        return "refused"
    if outcome.timed_out:
        raise DeviceError(f"still running after {SECONDS:g} s")
    simulator.take_findings()
    return "fault" if outcome.fault else "ran"


def fuzz(seconds: float, seed: int) -> tuple[dict[str, int], list[tuple[int, str, str]]]:
    """How often modules were refused, faulted and ran; seed, error and PTX of those that end the sim."""
    ends: dict[str, int] = {}
    failures: list[tuple[int, str, str]] = []
    simulator = Simulator(device_bytes=1 << 26, shared_bytes=1 << 20)
    stop = time.monotonic() + seconds
    try:
        while time.monotonic() < stop:
            source = random.Random(seed)
            ptx = module(source)
            try:
                end = attempt(simulator, ptx, source)
                ends[end] = ends.get(end, 0) + 1
            except DeviceError as error:
                failures.append((seed, str(error), ptx))
                simulator.close()
                simulator = Simulator(device_bytes=1 << 26, shared_bytes=1 << 20)
            seed += 1
    finally:
        simulator.close()
    return ends, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first module; then one more each")
    arguments = parser.parse_args()
    ends, failures = fuzz(arguments.seconds, arguments.seed)
    for seed, error, ptx in failures:
        sys.stdout.write(f"--- seed {seed}: {error}\n{ptx}\n")
    sys.stdout.write(f"{ends}, {len(failures)} not survived\n")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
