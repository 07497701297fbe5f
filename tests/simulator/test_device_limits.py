"""What a device has no more of: the heap of malloc() in kernels, a thread's stack, addresses."""

from pathlib import Path

import pytest
from built_programs import LIBRARY, Compile, call

from grader.records.findings import Finding
from grader.records.sentences import sentence
from grader.simulator.driver import Options, Simulator

ILLEGAL_ADDRESS = 700
SOURCE = """
__global__ void keep(int** out) { out[threadIdx.x] = static_cast<int*>(malloc(1 << 16)); }
__global__ void give_back(int** out) { free(out[threadIdx.x]); }
// How many of 256 threads get 64 KiB: all of 128 would just fit into 8 MiB.
int kept(int** out) {
  static int* host[256];
  keep<<<1, 256>>>(out);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  int count = 0;
  for (int* each : host) count += each != nullptr;
  return count;
}
int** room() { int** p; cudaMalloc(&p, 256 * sizeof *p); return p; }
#define FUNCTION extern "C" int
FUNCTION heap() { return kept(room()); }
FUNCTION larger_heap() { cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20); return kept(room()); }
FUNCTION heap_twice() {
  int** p = room();
  kept(p);
  give_back<<<1, 256>>>(p);
  return kept(p);
}

// In how many of the blocks malloc has no room, although each gives back what it gets.
__global__ void borrow(int bytes, int* refused) {
  void* p = malloc(bytes);
  if (p == nullptr) atomicAdd(refused, 1);
  free(p);
}
int refused(int blocks, int bytes) {
  int *p, host = -1;
  cudaMalloc(&p, sizeof host);
  cudaMemset(p, 0, sizeof host);
  borrow<<<blocks, 1>>>(bytes, p);
  cudaMemcpy(&host, p, sizeof host, cudaMemcpyDeviceToHost);
  return host;
}
FUNCTION few_borrow_much() { return refused(100, 1 << 16); }
FUNCTION many_borrow_little() { return refused(20000, 1 << 10); }
FUNCTION many_borrow_much() { return refused(1000, 1 << 16) > 800; }

__device__ __noinline__ int deep(int n, volatile int* sink) {
  int own[16];
  for (int i = 0; i < 16; i++) own[i] = n + i;
  if (n == 0) return own[3];
  const int r = deep(n - 1, sink);
  sink[0] = r;
  return r + own[n * 7 & 15];
}
__global__ void recurse(int n, int* out) { out[0] = deep(n, out); }
int recursed(int n) {
  int* p;
  cudaMalloc(&p, 4);
  recurse<<<1, 1>>>(n, p);
  return cudaDeviceSynchronize();
}
FUNCTION shallow() { return recursed(100); }
FUNCTION bottomless() { return recursed(100000); }

__global__ void copy(int* out, const int* in, int n) { out[threadIdx.x] = in[threadIdx.x]; }
FUNCTION null_argument() {
  int* p;
  cudaMalloc(&p, 4096);
  copy<<<1, 32>>>(p, nullptr, 0);
  return cudaDeviceSynchronize();
}
__global__ void pick(const char* table, long row, char* out) { out[0] = table[static_cast<int>(row * 8960)]; }
int picked(long row) {
  char *table, *out;
  cudaMalloc(&table, 1 << 20);
  cudaMalloc(&out, 1);
  pick<<<1, 1>>>(table, row, out);
  return cudaDeviceSynchronize();
}
FUNCTION wrapped_below() { return picked(255999); }
FUNCTION far_above() { return picked(200000); }
FUNCTION of_the_host() {
  static int numbers[32];
  int* p;
  cudaMalloc(&p, 128);
  copy<<<1, 32>>>(p, numbers, 0);
  return cudaDeviceSynchronize();
}
"""


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "device_limits.so", *LIBRARY)


def ran(library: Path, function: str) -> tuple[int, tuple[Finding, ...]]:
    """What a function returns, and the findings."""
    with Simulator(Options(initcheck=False)) as simulator:
        simulator.load(library)
        return call(simulator, library, function), simulator.take_findings()


@pytest.mark.parametrize(("function", "threads"), [("heap", 128), ("larger_heap", 256), ("heap_twice", 128)])
def test_malloc_in_a_kernel_returns_null_beyond_the_limit_of_its_heap(
    function: str, threads: int, library: Path
) -> None:
    assert ran(library, function) == (threads, ())


def test_blocks_that_a_gpu_runs_at_once_share_the_heap_of_malloc(library: Path) -> None:
    assert ran(library, "few_borrow_much")[0] == 0
    assert ran(library, "many_borrow_little")[0] == 0
    assert ran(library, "many_borrow_much")[0] == 1


def test_a_recursion_that_uses_up_the_stack_of_a_thread_is_told(library: Path) -> None:
    assert ran(library, "shallow") == (0, ())
    code, [finding] = ran(library, "bottomless")
    assert (code, finding.kind, finding.reason) == (ILLEGAL_ADDRESS, "local_oob", "calls")
    assert "the stack of the thread is used up" in str(sentence(finding))


def test_an_access_to_null_names_the_arguments_that_are_null(library: Path) -> None:
    code, [finding] = ran(library, "null_argument")
    assert (code, finding.kind, finding.reason) == (ILLEGAL_ADDRESS, "global_oob", "null_argument")
    assert "as argument 2" in str(sentence(finding))


@pytest.mark.parametrize(
    ("function", "reason"), [("wrapped_below", "far_before"), ("far_above", "far_behind")]
)
def test_an_index_that_wraps_is_no_pointer_of_the_host(function: str, reason: str, library: Path) -> None:
    code, [finding] = ran(library, function)
    assert (code, finding.kind, finding.reason) == (ILLEGAL_ADDRESS, "global_oob", reason)


def test_a_pointer_of_the_host_is_told_as_one(library: Path) -> None:
    code, [finding] = ran(library, "of_the_host")
    assert (code, finding.kind) == (ILLEGAL_ADDRESS, "host_pointer")
