"""Locks in global memory: a fence belongs at both ends, and what is no lock needs none."""

from pathlib import Path

import pytest
from built_programs import EVERY_WAY, LIBRARY, Compile, call, marked_lines, races

from grader.records.sentences import sentence
from grader.simulator.driver import Options, Simulator

SOURCE = """
#define LEADER if (threadIdx.x) return
__device__ void take(int* lock) { while (atomicCAS(lock, 0, 1) != 0) {} }
__device__ void take_by_exchange(int* lock) { while (atomicExch(lock, 1) != 0) {} }

__global__ void no_fence(int* lock, int* sum) {
  LEADER;
  take(lock);
  atomicAdd(sum + 1, 0);
  sum[32 * blockIdx.x] += 1;
  atomicExch(lock, 0);  // no_fence
}
__global__ void none_behind(int* lock, int* sum) {
  LEADER;
  take(lock);
  sum[32 * blockIdx.x] += 1;
  __threadfence();
  atomicExch(lock, 0);  // none_behind
}
__global__ void none_before(int* lock, int* sum) {
  LEADER;
  take_by_exchange(lock);
  __threadfence();
  sum[32 * blockIdx.x] += 1;
  *static_cast<volatile int*>(lock) = 0;  // none_before
}
__global__ void both(int* lock, int* sum) {
  LEADER;
  take(lock);
  __threadfence();
  sum[0] += 1;
  __threadfence();
  atomicExch(lock, 0);
}
__global__ void both_by_exchange(int* lock, int* sum) {
  LEADER;
  take_by_exchange(lock);
  __threadfence();
  sum[0] += 1;
  __threadfence();
  *static_cast<volatile int*>(lock) = 0;
}
__global__ void lock_of_each_lane(int* lock, int* sum) {
  const int n = threadIdx.x % 8;
  for (bool done = false; !done;) {
    if (atomicCAS(lock + n, 0, 1) == 0) {
      __threadfence();
      sum[n] += 1;
      __threadfence();
      atomicExch(lock + n, 0);
      done = true;
    }
  }
}
__global__ void counts_in_locks(int* lock, int* sum) {
  const int n = threadIdx.x % 10;
  while (atomicExch(lock + n, 1) != 0) {}
  sum[n] = sum[n] + 1;  // counts
  atomicExch(lock + n, 0);
}
__global__ void counts_beside_a_swap(int* most, int* sum) {
  int seen = 0;
  for (int old = -1; seen < threadIdx.x && old != seen;) {
    old = seen;
    seen = atomicCAS(most, old, threadIdx.x + 7);
  }
  sum[threadIdx.x % 10] += 1;
}
__global__ void total_in_lock(int* lock, int* sum) {
  LEADER;
  take(lock);
  sum[0] = sum[0] + 1;  // total
  __threadfence();
  atomicExch(lock, 0);
}
__global__ void list(int* head, int* next) {
  const int n = 1 + blockIdx.x * blockDim.x + threadIdx.x;
  for (int turn = 0; turn < 3; ++turn) next[3 * n + turn] = atomicExch(head, 3 * n + turn);
}
__global__ void stack(int* head, int* next) {
  const int n = 1 + blockIdx.x * blockDim.x + threadIdx.x;
  int seen = *static_cast<volatile int*>(head), old;
  do {
    old = seen;
    next[n] = old;
    __threadfence();
    seen = atomicCAS(head, old, n);
  } while (seen != old);
}
__global__ void last_block(int* counter, int* sum) {
  LEADER;
  sum[blockIdx.x] = 1;
  __threadfence();
  if (atomicAdd(counter, 1) == gridDim.x - 1) {
    __threadfence();
    for (int n = 1; n < gridDim.x; ++n) sum[0] += sum[n];
    *counter = 0;
  }
}

template <class Kernel> int launched(Kernel kernel) {
  int *lock, *data;
  cudaMalloc(&lock, 64 * sizeof(int));
  cudaMalloc(&data, 4096 * sizeof(int));
  cudaMemset(lock, 0, 64 * sizeof(int));
  cudaMemset(data, 0, 4096 * sizeof(int));
  kernel<<<4, 32>>>(lock, data);
  return cudaDeviceSynchronize();
}
#define FUNCTION(kernel) extern "C" int run_##kernel() { return launched(kernel); }
"""
RIGHT = ("both", "both_by_exchange", "lock_of_each_lane", "list", "stack", "last_block")
LINES = {kernel: lines for kernel, lines in marked_lines(SOURCE).items() if kernel not in {"counts", "total"}}
RACES = ("counts_in_locks", "counts_beside_a_swap", "total_in_lock")


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    functions = "\n".join(f"FUNCTION({kernel})" for kernel in (*RIGHT, *LINES, *RACES))
    return nvcc(SOURCE + functions, "locks.so", *LIBRARY)


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize("kernel", RIGHT)
def test_what_is_fenced_or_no_lock_has_no_finding(kernel: str, options: Options, library: Path) -> None:
    assert races(library, f"run_{kernel}", options, set()) == []


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize("kernel", LINES)
def test_a_lock_without_a_fence_is_named_where_it_is_given_back(
    kernel: str, options: Options, library: Path
) -> None:
    (lines,) = races(library, f"run_{kernel}", options, {"unfenced_lock"})
    assert lines >= LINES[kernel]


@pytest.mark.parametrize("options", EVERY_WAY)
def test_a_race_of_what_a_lock_without_fences_guards_names_the_lock(options: Options, library: Path) -> None:
    reasons = {}
    for kernel in RACES:
        with Simulator(options) as simulator:
            simulator.load(library)
            assert call(simulator, library, f"run_{kernel}") == 0
            assert simulator.synchronize()
            findings = simulator.take_findings()
            reasons[kernel] = {finding.kind: finding.reason for finding in findings}
            for finding in findings:
                assert ("taken at line" in str(sentence(finding))) == (finding.reason == "unfenced_lock")
    assert set(reasons["counts_in_locks"]) == {"unfenced_lock", "race_global"}
    assert reasons["counts_in_locks"]["race_global"] == "unfenced_lock"
    assert reasons["total_in_lock"]["race_global"] == "unfenced_lock"
    assert reasons["counts_beside_a_swap"]["race_global"] != "unfenced_lock"
