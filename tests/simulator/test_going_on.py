"""Kernels that err go on where they would on a GPU, after a finding, and end where a GPU ends them."""

from pathlib import Path

import pytest
from built_programs import EVERY_WAY, LIBRARY, Compile, call

from grader.simulator.driver import Options, Simulator

SOURCE = """
constexpr int n = 100;
__global__ void next(const float* from, float* to, int past) {
  const int i = threadIdx.x;
  if (i < n) to[i] = from[i + past];
}
__global__ void fill(float* to, long first, int count, float value) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) to[first + i] = value;
}
__global__ void add(float* to, long at) { atomicAdd(to + at, 1.0f); }
__global__ void pair(const float* from, float2* to) { *to = *reinterpret_cast<const float2*>(from + n + 1); }

__global__ void beyond_shared(float* to, int at) {
  extern __shared__ float slots[];
  slots[threadIdx.x] = threadIdx.x;
  if (threadIdx.x == 0) slots[at] = 7;
  to[threadIdx.x] = slots[threadIdx.x] + (threadIdx.x == 0 ? slots[at] : 0);
}

__global__ void beyond_local(float* to, int past) {
  float own[4] = {1, 2, 3, 4};
  float* at = own;
  asm volatile("" : "+l"(at)::"memory");
  if (past % 2) at[past] = threadIdx.x;
  to[threadIdx.x] = at[past] + at[3];
}

__global__ void from_the_exited(int* out, int threads) {
  const int lane = threadIdx.x % 32;
  int value = 100 + lane;
  asm volatile("" : "+r"(value));
  if (lane >= threads) return;
  out[threadIdx.x] = __shfl_down_sync(0xffffffff, value, 8);
}

static float host[2 * n];
static float* numbers() {
  float* data;
  for (int i = 0; i < n; ++i) host[i] = i;
  cudaMalloc(&data, n * sizeof *data);
  cudaMemcpy(data, host, n * sizeof *data, cudaMemcpyHostToDevice);
  return data;
}
static int back(const float* data) {
  return cudaMemcpy(host, data, n * sizeof *data, cudaMemcpyDeviceToHost);
}
static int expect(bool right) { return right ? 0 : 1; }

extern "C" {
int read() {
  float *from = numbers(), *to = numbers();
  next<<<1, 128>>>(from, to, 1);
  if (const int error = back(to)) return error;
  for (int i = 0; i < n - 1; ++i) {
    if (host[i] != i + 1) return 1;
  }
  return expect(host[n - 1] == 0);
}
int write() {  // what is written there is read there, and its neighbours are as they were
  float *data = numbers(), *other = numbers(), *third = numbers();
  fill<<<1, 32>>>(data, n, n, 5);
  add<<<1, 1>>>(data, n + 3);
  if (const int error = back(other)) return error;
  for (int i = 0; i < n; ++i) {
    if (host[i] != i) return 1;
  }
  next<<<1, 128>>>(data, third, n);
  if (const int error = back(third)) return error;
  for (int i = 0; i < n; ++i) {
    if (host[i] != (i == 3 ? 6 : 5)) return 1;
  }
  return 0;
}
int into_another() {
  float *first = numbers(), *second = numbers();
  fill<<<1, 32>>>(first, second - first, 1, 9);
  if (const int error = back(second)) return error;
  return expect(host[0] == 9 && host[1] == 1);
}
int freed() {
  float *from = numbers(), *to = numbers();
  cudaFree(from);
  next<<<1, 128>>>(from, to, 0);
  if (const int error = back(to)) return error;
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += host[i];
  return expect(sum == 0);
}
int far() {
  fill<<<1, 1>>>(numbers(), 1 << 20, 1, 1);
  return cudaDeviceSynchronize();
}
int null() {
  fill<<<1, 1>>>(nullptr, 3, 1, 1);
  return cudaDeviceSynchronize();
}
int of_the_host() {
  fill<<<1, 1>>>(host, 0, 1, 1);
  return cudaDeviceSynchronize();
}
int last_of_all() {  // behind it comes address 0
  fill<<<1, 1>>>(nullptr, -1, 1, 1);
  return cudaDeviceSynchronize();
}
int last_of_all_updated() {
  add<<<1, 1>>>(nullptr, -1);
  return cudaDeviceSynchronize();
}
int misaligned() {
  pair<<<1, 1>>>(numbers(), nullptr);
  return cudaDeviceSynchronize();
}
static int shared(int at) {
  float* to = numbers();
  beyond_shared<<<1, n, n * sizeof(float)>>>(to, at);
  if (const int error = back(to)) return error;
  for (int i = 1; i < n; ++i) {
    if (host[i] != i) return 1;
  }
  return expect(host[0] == 7);
}
int in_the_window() { return shared(n + 27); }
int behind_the_window() { return shared(n + 28); }

static int local(int past) {
  float* to = numbers();
  beyond_local<<<1, n>>>(to, past);
  if (const int error = back(to)) return error;
  for (int i = 0; i < n; ++i) {
    if (host[i] != (past % 2 ? i : 0) + 4) return 1;
  }
  return 0;
}
int behind_its_own() { return local(147) + local(146); }
int far_behind_its_own() { return local(148); }

static int* integers(int threads) {
  int *device, *out = reinterpret_cast<int*>(host);
  cudaMalloc(&device, 32 * sizeof *out);
  cudaMemset(device, 0, 32 * sizeof *out);
  from_the_exited<<<1, threads>>>(device, threads < 32 ? 32 : 20);
  cudaMemcpy(out, device, 32 * sizeof *out, cudaMemcpyDeviceToHost);
  return out;
}
int exited() {
  const int* out = integers(32);
  for (int i = 0; i < 20; ++i) {
    if (out[i] != 108 + i) return 100 + i;
  }
  return 0;
}
int never_there() {
  const int* out = integers(20);
  for (int i = 0; i < 20; ++i) {
    if (out[i] != (i < 12 ? 108 + i : 100 + i)) return 100 + i;
  }
  return 0;
}
}
"""


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "going_on.so", *LIBRARY)


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize(
    ("function", "answer", "kinds"),
    [
        ("read", 0, ["global_oob"]),
        ("write", 0, ["global_oob"] * 3),
        ("into_another", 0, []),
        ("freed", 0, ["use_after_free"]),
        ("in_the_window", 0, ["shared_oob"] * 2),
        ("behind_its_own", 0, ["local_oob"] * 2),
        ("exited", 0, ["exited_lanes"]),
        ("never_there", 0, ["exited_lanes"]),
        ("far", 700, ["global_oob"]),
        ("null", 700, ["global_oob"]),
        ("of_the_host", 700, ["host_pointer"]),
        ("last_of_all", 700, ["host_pointer"]),
        ("last_of_all_updated", 700, ["host_pointer"]),
        ("misaligned", 716, ["global_oob"]),
        ("behind_the_window", 700, ["shared_oob"]),
        ("far_behind_its_own", 700, ["local_oob"]),
    ],
)
def test_a_kernel_ends_where_a_gpu_ends_it(
    function: str, answer: int, kinds: list[str], options: Options, library: Path
) -> None:
    with Simulator(options) as simulator:
        simulator.load(library)
        assert call(simulator, library, function) == answer
        assert bool(simulator.synchronize()) == (answer == 0)
        assert [finding.kind for finding in simulator.take_findings()] == kinds
