"""Timed calls are made one after the other, also those of a launcher that would have them meet."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

from grader.assignments.assignment import load
from grader.devices.device import ArrayArgument, Call, ScalarArgument, StreamArgument
from grader.devices.timed import Content, Piece, Plan
from grader.run.bench import find_machine

if TYPE_CHECKING:
    from pathlib import Path

SLOTS = 8
SOURCE = """
#include <cuda_runtime.h>

__device__ int running;

// met becomes 1 if another call is at work at the same time, as 0.1 ms leave it ample time to be.
__global__ void ker_meet(float* met) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
  int others = atomicAdd(&running, 1);
  const long long start = clock64();
  while (clock64() - start < 200000) others |= atomicAdd(&running, 0) - 1;
  *met = others != 0;
  atomicSub(&running, 1);
}

extern "C" void launch_in_turn(float* met, int, cudaStream_t one, cudaStream_t other) {
  static int calls = 0;
  ker_meet<<<1, 1, 0, calls++ % 2 ? one : other>>>(met);
}

extern "C" void launch_pooled(float* met, int, cudaStream_t one, cudaStream_t) {
  float* seen;
  cudaMallocAsync(&seen, sizeof *seen, one);
  ker_meet<<<1, 1, 0, one>>>(seen);
  cudaMemcpyAsync(met, seen, sizeof *seen, cudaMemcpyDeviceToDevice, one);
  cudaFreeAsync(seen, one);
}

extern "C" void launch_apart(float* met, int, cudaStream_t, cudaStream_t) {
  static int calls = 0;
  static cudaStream_t own[2];
  if (calls == 0)
    for (cudaStream_t& one : own) cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
  ker_meet<<<1, 1, 0, own[calls++ % 2]>>>(met);
}

extern "C" void launch_early(float* met, int, cudaStream_t one, cudaStream_t) {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = config.blockDim = 1;
  config.stream = one;
  config.attrs = &early;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, ker_meet, met);
}
"""


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("launcher", "method"),
    [
        ("launch_in_turn", "graph"),
        ("launch_in_turn", "events"),
        ("launch_early", "graph"),
        ("launch_early", "events"),
        ("launch_pooled", "graph"),
        ("launch_pooled", "events"),
        ("launch_apart", "events"),  # no graph takes up what it does
    ],
)
def test_no_call_begins_before_the_one_ahead_has_ended(launcher: str, method: str, tmp_path: Path) -> None:
    machine = find_machine("gpu", "process", load("llm_systems_3").rules.limits)
    assert machine.gpu is not None
    source, library = tmp_path / "meet.cu", tmp_path / "meet.so"
    source.write_text(SOURCE)
    options = ("-shared", "-cudart", "shared", "-Xcompiler", "-fPIC", f"-arch={machine.gpu.architecture}")
    subprocess.run([machine.toolchain.nvcc, *options, "-o", library, source], check=True)
    plan = Plan(
        call=Call(
            launcher,
            (
                ArrayArgument("met", "float32", (1,), None),
                ScalarArgument("count", "int", 1),
                StreamArgument("one", 0),
                StreamArgument("other", 1),
            ),
            10.0,
        ),
        written=frozenset({"met"}),
        method=method,
        slots=SLOTS,
        turns={},
        libraries=machine.baseline,
        steps=(),
        scratch=(),
        reads=64,
        writes=64,
    )
    with machine.gpu.open_timed(library, (launcher,), [*machine.baseline]) as session:
        session.prepare(plan, [{}])
        for arm in ("baseline", "submission"):
            session.sweep(arm, [Content(0, 0)] * SLOTS, 3)
            session.sweep(arm, [Content(0, 0)] * SLOTS)
        session.keep([Piece(slot, "met", 0, 1) for slot in range(SLOTS)])
        (kept,) = session.fetch()
    np.testing.assert_array_equal(kept["met"], np.zeros(SLOTS))
