"""Managed and pinned memory that the host uses while a kernel or a copy may still use it."""

from pathlib import Path

import pytest
from built_programs import LIBRARY, Compile, call, marked_lines

from grader.records.findings import Finding
from grader.records.sentences import sentence
from grader.simulator.driver import Options, Simulator

SOURCE = """
#include <cstring>
constexpr int n = 4096;
__global__ void twice(int* p, int from, int to) {
  const int i = from + blockIdx.x * blockDim.x + threadIdx.x;
  if (i < to) p[i] = 2 * i;  // twice
}
__global__ void scattered(int* p) { p[threadIdx.x * 37 % 1024] = 1; }
__global__ void add_up(const int* p, int* sum) { atomicAdd(sum, p[threadIdx.x]); }
__global__ void raise(int* data, volatile int* flag) { *data = 7; __threadfence_system(); *flag = 1; }

struct Both {
  int *managed, *pinned, *device;
  cudaStream_t a;
  cudaEvent_t event;
  Both() {
    cudaMallocManaged(&managed, n * sizeof(int));
    cudaMallocHost(&pinned, n * sizeof(int));
    cudaMalloc(&device, n * sizeof(int));
    cudaMemset(device, 0, n * sizeof(int));
    memset(managed, 0, n * sizeof(int));
    memset(pinned, 0, n * sizeof(int));
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaEventCreate(&event);
    cudaDeviceSynchronize();
  }
  void write(int* p, int from = 0, int to = n) { twice<<<16, 256, 0, a>>>(p, from, to); }
  void read(const int* p) { add_up<<<1, 256, 0, a>>>(p, device); }
  void copy_out() { cudaMemcpyAsync(pinned, device, n * sizeof(int), cudaMemcpyDeviceToHost, a); }
  void copy_in() { cudaMemcpyAsync(device, pinned, n * sizeof(int), cudaMemcpyHostToDevice, a); }
  void wait() { cudaStreamSynchronize(a); }
};
int sum(const int* p, int from = 0, int to = n) {
  int all = 0;
  for (int i = from; i < to; ++i) all += *(volatile const int*)(p + i);
  return all;
}
void set(int* p, int from = 0, int to = n) { for (int i = from; i < to; ++i) *(volatile int*)(p + i) = i; }
#define FUNCTION(name, ...) extern "C" int name() { Both b; __VA_ARGS__; return cudaDeviceSynchronize(); }
FUNCTION(managed_read, b.write(b.managed); sum(b.managed))
FUNCTION(mapped_read, b.write(b.pinned); sum(b.pinned))
FUNCTION(scattered_read, scattered<<<1, 64, 0, b.a>>>(b.managed); sum(b.managed))
FUNCTION(written_by_both, b.write(b.managed); set(b.managed))
FUNCTION(refilled, b.read(b.managed); set(b.managed))
FUNCTION(copied_and_read, b.copy_out(); sum(b.pinned))
FUNCTION(refilled_source, b.copy_in(); set(b.pinned))
FUNCTION(waited_for_another, b.write(b.managed); cudaStreamSynchronize(0); sum(b.managed))
FUNCTION(filled_later, cudaMemsetAsync(b.managed, 1, 64, b.a); sum(b.managed))
FUNCTION(end_of_the_page, b.write(b.managed, 500, 600); sum(b.managed))

FUNCTION(waited, b.write(b.managed); b.wait(); sum(b.managed); set(b.managed))
FUNCTION(waited_for_all, b.write(b.managed); cudaDeviceSynchronize(); sum(b.managed))
FUNCTION(waited_for_event,
  b.write(b.managed); cudaEventRecord(b.event, b.a); cudaEventSynchronize(b.event); sum(b.managed))
FUNCTION(asked_until_done, b.write(b.managed); while (cudaStreamQuery(b.a)) {} sum(b.managed))
FUNCTION(behind_a_copy, twice<<<16, 256>>>(b.managed, 0, n); int x;
  cudaMemcpy(&x, b.managed, 4, cudaMemcpyDefault); sum(b.managed))
FUNCTION(copied_and_waited, b.copy_out(); b.wait(); sum(b.pinned); b.copy_in(); b.wait(); set(b.pinned))
FUNCTION(blocking_copies, cudaMemcpy(b.pinned, b.device, 64, cudaMemcpyDeviceToHost); sum(b.pinned);
  cudaMemcpy(b.device, b.pinned, 64, cudaMemcpyHostToDevice); set(b.pinned))
FUNCTION(filled, cudaMemset(b.managed, 1, 64); sum(b.managed))
FUNCTION(both_read, b.read(b.managed); sum(b.managed))
FUNCTION(another_array, b.write(b.managed); set(b.pinned); sum(b.pinned))
FUNCTION(other_half_of_a_page, b.write(b.managed, 0, 512);
  set(b.managed, 512, 1024); sum(b.managed, 512, 1024))
FUNCTION(flag, raise<<<1, 1, 0, b.a>>>(b.managed, b.pinned);
  while (!*(volatile int*)b.pinned) {} sum(b.managed, 0, 1))
FUNCTION(in_host_function, b.write(b.managed);
  cudaLaunchHostFunc(b.a, [](void* p) { sum((int*)p); }, b.managed); b.wait())
"""


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "host_races.so", *LIBRARY)


def findings(library: Path, function: str, options: Options | None = None) -> tuple[Finding, ...]:
    with Simulator(options or Options()) as simulator:
        simulator.load(library)
        assert call(simulator, library, function) == 0
        assert simulator.synchronize()
        return simulator.take_findings()


@pytest.mark.parametrize(
    ("function", "does", "did"),
    [
        ("managed_read", "reads", "write"),
        ("mapped_read", "reads", "write"),
        ("scattered_read", "reads", "write"),
        ("written_by_both", "writes", "write"),
        ("refilled", "writes", "read"),
        ("copied_and_read", "reads", "write"),
        ("refilled_source", "writes", "read"),
        ("waited_for_another", "reads", "write"),
        ("filled_later", "reads", "write"),
        ("end_of_the_page", "reads", "write"),
    ],
)
def test_a_host_that_does_not_wait_is_told_once(function: str, does: str, did: str, library: Path) -> None:
    [finding] = findings(library, function)
    assert finding.kind == "race_host"
    assert (finding.values["does"], finding.values["did"]) == (does, did)


@pytest.mark.parametrize(
    "function",
    [
        "waited",
        "waited_for_all",
        "waited_for_event",
        "asked_until_done",
        "behind_a_copy",
        "copied_and_waited",
        "blocking_copies",
        "filled",
        "both_read",
        "another_array",
        "other_half_of_a_page",
        "flag",
        "in_host_function",
    ],
)
def test_a_host_that_waits_or_uses_something_else_has_no_finding(function: str, library: Path) -> None:
    assert findings(library, function) == ()


def test_kernel_line_byte_and_function_of_the_host_are_named(library: Path) -> None:
    [finding] = findings(library, "end_of_the_page")
    assert {finding.line} == marked_lines(SOURCE)["twice"]
    assert finding.values["byte"] == 500 * 4
    assert "cudaStreamSynchronize() of its stream" in str(sentence(finding))
    [finding] = findings(library, "copied_and_read")
    assert finding.values["work"] == "cudaMemcpyAsync"


def test_nothing_is_watched_without_racecheck(library: Path) -> None:
    assert findings(library, "managed_read", Options(racecheck=False)) == ()
