"""Kernels that do not end: each is ended by a budget of instructions, and the finding names the loop."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
from built_programs import LIBRARY, Compile, call, marked_lines

from grader.devices.budget import BUDGET as BUDGETS
from grader.devices.device import ArrayArgument, Call
from grader.records.sentences import sentence
from grader.simulator.driver import Options, Order, Simulator

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """
__device__ int flag, lock, first, second;
__device__ volatile int never;
namespace {
__device__ int hidden;
}
__global__ void registers(int* p) {
  unsigned n = threadIdx.x;
  while (n != 1u << 31) n = n * 5 + 2;  // registers
  *p = n;
}
__global__ void spin_on_flag(int* p) {
  while (atomicAdd(&flag, 0) == 0) {}  // atomic
  *p = 1;
}
__global__ void spin_on_hidden(int* p) {
  while (atomicOr(&hidden, 0) == 0) {}  // hidden
  *p = 1;
}
__global__ void own_variable(int* p) {
  static __device__ volatile int own;
  while (own == 0) {}  // own
  *p = 1;
}
__global__ void not_a_number(int* p) {
  int old = p[0], assumed;
  do {  // nan
    assumed = old;  // nan
    old = atomicCAS(p, assumed, __float_as_int(__int_as_float(assumed) + __int_as_float(-1)));  // nan
  } while (__int_as_float(assumed) != __int_as_float(old));  // nan
}
__global__ void volatile_flag(int* p) {
  while (never == 0) {}  // flag
  *p = 1;
}
__global__ void lock_kept() {
  while (atomicCAS(&lock, 0, 1) != 0) {}  // lock
}
__global__ void each_other() {
  volatile int* mine = blockIdx.x == 0 ? &first : &second;
  volatile int* other = blockIdx.x == 0 ? &second : &first;
  while (*other == 0) {}  // blocks
  *mine = 1;
}
__global__ void inner(int* p, int n) {
  for (int i = 0; i < n; ++i) {
    int k = i;
    while (k < n) {  // inner
      __threadfence();  // inner
      k = p[0] & 1;  // inner
    }
    p[1] = k;
  }
}
__global__ void outer(int* p, int n) {
  while (p[0] == 7) {  // outer
    for (int i = 0; i < n; ++i) p[i + 1] += i;  // outer
    __threadfence();
  }  // outer
}
__global__ void with_barrier(volatile int* p) {
  while (p[0] == 7) {  // barrier
    __syncthreads();  // barrier
  }
}
__global__ void one_of_many(int* p) {
  if (blockIdx.x == 3 && threadIdx.x == 40) {
    unsigned n = 0;
    while (n != 1u << 31) n = n * 5 + 2;  // one
    *p = n;
  }
}
__device__ int helped(int* p) {
  int n = 0;
  while (p[0] == 7) n += p[1];  // helper
  return n;
}
__global__ void calls_a_helper(int* p) { p[2] = helped(p); }
__global__ void nothing() {}
__global__ void long_but_right(int* p, int n) {
  for (int i = 0; i < n; ++i) {
    p[threadIdx.x] += i;
    __syncthreads();
  }
}

int* sevens() {
  int* p;
  int host[64];
  for (int& value : host) value = 7;
  cudaMalloc(&p, sizeof host);
  cudaMemcpy(p, host, sizeof host, cudaMemcpyHostToDevice);
  return p;
}
#define RUN(name, launch) \\
  extern "C" int run_##name() { int* p = sevens(); (void)p; launch; return cudaDeviceSynchronize(); }
RUN(registers, (registers<<<2, 64>>>(p)))
RUN(atomic, (spin_on_flag<<<2, 64>>>(p)))
RUN(hidden, (spin_on_hidden<<<2, 64>>>(p)))
RUN(own, (own_variable<<<2, 64>>>(p)))
RUN(nan, (not_a_number<<<2, 64>>>(p)))
RUN(flag, (volatile_flag<<<2, 64>>>(p)))
RUN(lock, (lock_kept<<<2, 1>>>()))
RUN(blocks, (each_other<<<2, 1>>>()))
RUN(inner, (inner<<<1, 32>>>(p, 100)))
RUN(outer, (outer<<<1, 1>>>(p, 20)))
RUN(barrier, (with_barrier<<<1, 64>>>(p)))
RUN(one, (one_of_many<<<40, 64>>>(p)))
RUN(helper, (calls_a_helper<<<1, 1>>>(p)))
RUN(long_but_right, (long_but_right<<<1, 64>>>(p, 3000)))
extern "C" int run_relaunched() {
  while (cudaDeviceSynchronize() == cudaSuccess) nothing<<<1, 1>>>();
  return 1;
}
"""
LINES = marked_lines(SOURCE)
BUDGET = Options(instruction_budget=4_000_000, total_budget=4_000_000, progress_budget=1_000_000)


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "hangs.so", *LIBRARY)


def hang(library: Path, function: str, options: Options = BUDGET) -> tuple[int, str]:
    """Line and message of the one finding."""
    with Simulator(options) as simulator:
        simulator.load(library)
        assert call(simulator, library, f"run_{function}") != 0
        simulator.synchronize()
        found = [finding for finding in simulator.take_findings() if finding.tool == "hang"]
    (finding,) = found
    assert finding.kind == "budget"
    return finding.line, str(sentence(finding))


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("registers", "whose end depends on nothing that another thread could change"),
        ("flag", "waits for the variable never to change, which no thread does"),
        ("lock", "tries to take a lock in the variable lock that no thread releases"),
        ("blocks", "to change, which no thread does"),
        ("inner", "reads byte 0 of an array in global memory again and again"),
        ("outer", ""),
        ("barrier", "waits for byte 0 of an array in global memory to change"),
        ("one", ""),
        ("helper", ""),
        ("atomic", "waits for the variable flag to change, which no thread does"),
        ("hidden", "waits for the variable hidden to change, which no thread does"),
        ("own", "waits for the variable own_variable(int*)::own to change, which no thread does"),
        (
            "nan",
            "whose atomicCAS on byte 0 of an array in global memory succeeds, and yet it goes round again",
        ),
    ],
)
def test_an_endless_loop_is_named_with_what_it_waits_for(library: Path, function: str, said: str) -> None:
    line, message = hang(library, function)
    assert line in LINES[function]
    assert said in message


def test_a_host_that_launches_for_ever_is_named(library: Path) -> None:
    _, message = hang(library, "relaunched")
    launches = re.match(r"the host has launched (\d+) kernels in this call and goes on", message)
    assert launches is not None
    assert int(launches[1]) == 3997  # 1000 instructions for each launch, and one of the kernel


def ended(library: Path, kernel: str, value: int) -> str:
    """What ended the kernel, launched on memory that holds the value."""
    with Simulator(BUDGET) as simulator:
        simulator.load(library)
        memory = simulator.allocate(256)
        simulator.write(memory, struct.pack("<64i", *[value] * 64))
        return simulator.launch(kernel, (40, 1, 1), (64, 1, 1), [struct.pack("<Q", memory)]).message


@pytest.mark.parametrize(
    ("kernel", "budget"),
    [
        ("_Z11one_of_manyPi", ": 1,000,000 warp instructions since a warp last ended"),
        ("_Z12with_barrierPVi", ": 4,000,000 warp instructions in all launches"),
    ],
)
def test_a_kernel_ends_with_the_budget_that_it_meets_first_and_always_there(
    library: Path, kernel: str, budget: str
) -> None:
    message = ended(library, kernel, 7)
    assert budget in message
    assert ended(library, kernel, 7) == message


def test_a_long_kernel_that_passes_barriers_needs_no_more_than_the_total(library: Path) -> None:
    for total, ends in ((4_000_000, True), (20_000, False)):
        options = Options(instruction_budget=10**9, total_budget=total, progress_budget=10_000)
        with Simulator(options) as simulator:
            simulator.load(library)
            assert (call(simulator, library, "run_long_but_right") == 0) is ends


def test_the_budget_of_all_launches_begins_anew_with_each_configuration(library: Path) -> None:
    with Simulator(BUDGET) as simulator:
        simulator.load(library)
        for _ in range(30):
            simulator.configure(BUDGET)
            assert call(simulator, library, "run_long_but_right") == 0


TURNS = """
__device__ int turn, states[4096], sums[4096], prefixes[4096];

// Each block waits for its turn and hands it on.
__global__ void polled(int* out, const int* in) {
  if (threadIdx.x == 0) {
    while (atomicAdd(&turn, 0) != blockIdx.x) {}
    __threadfence();
    out[blockIdx.x] = in[blockIdx.x];
    __threadfence();
    atomicAdd(&turn, 1);
  }
}
__global__ void read(int* out, const int* in) {
  if (threadIdx.x == 0) {
    while (*(volatile int*)&turn != gridDim.x - 1 - blockIdx.x) {}
    __threadfence();
    out[blockIdx.x] = in[blockIdx.x];
    __threadfence();
    atomicAdd(&turn, 1);
  }
}
// A scan in one pass: each block adds up what those before it published, back to one that knows its prefix.
__global__ void look_back(int* out, const int* in) {
  const int block = blockIdx.x;
  if (threadIdx.x == 0) {
    const int own = in[block];
    atomicExch(&sums[block], own);
    __threadfence();
    atomicExch(&states[block], 1);
    int before = 0;
    for (int n = block - 1, state = 1; n >= 0 && state != 2; --n) {
      while ((state = atomicAdd(&states[n], 0)) == 0) {}
      __threadfence();
      before += atomicAdd(state == 2 ? &prefixes[n] : &sums[n], 0);
    }
    atomicExch(&prefixes[block], before + own);
    __threadfence();
    atomicExch(&states[block], 2);
    out[block] = before + own;
  }
}
"""


@pytest.fixture(scope="module")
def turns(nvcc: Compile) -> Path:
    return nvcc(TURNS, "turns.so", *LIBRARY)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("order", [Order.PROGRAM, Order.REVERSED])
@pytest.mark.parametrize(
    ("kernel", "blocks"),  # where the last block comes first, all have to be resident
    [("_Z6polledPiPKi", 4096), ("_Z4readPiPKi", 3456), ("_Z9look_backPiPKi", 4096)],
)
def test_blocks_that_take_turns_end_within_the_budget_in_either_order(
    turns: Path, kernel: str, blocks: int, order: Order, threads: int
) -> None:
    given = np.arange(blocks, dtype=np.int32)
    array = ArrayArgument("out", "int32", (blocks, 1), None)
    real = Call("scan", (array,), seconds=60.0)
    options = Options(
        total_budget=BUDGETS.total(real),
        progress_budget=BUDGETS.progress(real),
        order=order,
        threads=threads,
    )
    with Simulator(options) as simulator:
        simulator.load(turns)
        out, source = simulator.allocate(given.nbytes), simulator.allocate(given.nbytes)
        simulator.write(source, given.tobytes())
        addresses = [struct.pack("<Q", address) for address in (out, source)]
        outcome = simulator.launch(kernel, (blocks, 1, 1), (32, 1, 1), addresses)
        assert outcome, outcome.message
        assert simulator.take_findings() == ()
        got = np.frombuffer(simulator.read(out, given.nbytes), np.int32)
    np.testing.assert_array_equal(got, given.cumsum() if "look_back" in kernel else given)
