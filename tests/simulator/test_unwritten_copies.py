"""What the host copies back without anything having written it."""

from pathlib import Path

import pytest
from built_programs import LIBRARY, Compile, call

from grader.records.findings import Finding, Severity
from grader.records.sentences import sentence
from grader.simulator.driver import Options, Simulator

SOURCE = """
#include <vector>
struct Tagged { char tag; int number; };
__global__ void square(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i;
}
__global__ void use(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x]; }
__global__ void tag(Tagged* all) { all[threadIdx.x].tag = 1; all[threadIdx.x].number = 2; }
__global__ void eighth(float* out) { out[8 * threadIdx.x] = 1; }

constexpr int n = 1000;
float* fresh() { float* p; cudaMalloc(&p, n * sizeof(float)); return p; }
int copied(const void* from, size_t bytes) {
  std::vector<char> host(bytes);
  return cudaMemcpy(host.data(), from, bytes, cudaMemcpyDeviceToHost);
}
int squared(int blocks, int first = 0, int count = n) {
  float *in = fresh(), *out = fresh();
  cudaMemset(in, 0, n * sizeof(float));
  square<<<blocks, 250>>>(in, out, n);
  use<<<1, 32>>>(out, in);
  return copied(out + first, count * sizeof(float));
}
#define FUNCTION extern "C" int
FUNCTION small_grid() { return squared(2); }
FUNCTION whole_grid() { return squared(4); }
FUNCTION written_part() { return squared(2, 100, 400); }
FUNCTION no_launch() { return copied(fresh(), n * sizeof(float)); }
FUNCTION filled() {
  float* p = fresh();
  cudaMemset(p, 0, n * sizeof(float));
  return copied(p, n * sizeof(float));
}
FUNCTION every_eighth() { float* p = fresh(); eighth<<<1, 125>>>(p); return copied(p, n * sizeof(float)); }
FUNCTION padding() {
  Tagged* p;
  cudaMalloc(&p, 64 * sizeof *p);
  tag<<<1, 64>>>(p);
  return copied(p, 64 * sizeof *p);
}
FUNCTION to_pinned() {
  float *p = fresh(), *host;
  cudaMallocHost(&host, n * sizeof(float));
  cudaMemcpyAsync(host, p, n * sizeof(float), cudaMemcpyDeviceToHost);
  return cudaDeviceSynchronize();
}
FUNCTION passed_on() {
  float *p = fresh(), *q = fresh();
  cudaMemcpy(q, p, n * sizeof(float), cudaMemcpyDeviceToDevice);
  return cudaDeviceSynchronize();
}
FUNCTION columns() {
  float* p = fresh();
  std::vector<float> host(n);
  square<<<4, 250>>>(p, p, n);
  return cudaMemcpy2D(host.data(), 40, p, 100, 40, 40, cudaMemcpyDeviceToHost);
}
FUNCTION unwritten_columns() {
  float* p = fresh();
  std::vector<float> host(n);
  cudaMemset2D(p, 100, 0, 40, 40);
  return cudaMemcpy2D(host.data(), 40, p + 5, 100, 40, 40, cudaMemcpyDeviceToHost);
}
"""


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "unwritten_copies.so", *LIBRARY)


def warnings(library: Path, function: str) -> tuple[Finding, ...]:
    with Simulator(Options()) as simulator:
        simulator.load(library)
        assert call(simulator, library, function) == 0
        assert simulator.synchronize()
        findings = simulator.take_findings()
    assert all(finding.severity is Severity.WARNING for finding in findings)
    return findings


@pytest.mark.parametrize(
    ("function", "copied", "missing", "first"),
    [
        ("small_grid", 4000, 2000, 2000),
        ("no_launch", 4000, 4000, 0),
        ("every_eighth", 4000, 3500, 4),
        ("to_pinned", 4000, 4000, 0),
        ("unwritten_columns", 1600, 800, 40),
    ],
)
def test_what_nothing_wrote_is_told_with_its_range(
    function: str, copied: int, missing: int, first: int, library: Path
) -> None:
    [finding] = warnings(library, function)
    assert (finding.kind, finding.reason) == ("uninit_global", "copied_out")
    values = finding.values
    assert (values["copied"], values["bytes"], values["first"]) == (copied, missing, first)


def test_the_launch_that_should_have_written_is_named_and_not_those_that_read(library: Path) -> None:
    [finding] = warnings(library, "small_grid")
    assert "square" in str(finding.values["launch"])
    assert "with 2 x 1 x 1 blocks of 250 x 1 x 1 threads" in str(sentence(finding))
    [finding] = warnings(library, "no_launch")
    assert "launch" not in str(sentence(finding))


@pytest.mark.parametrize(
    "function", ["whole_grid", "written_part", "filled", "padding", "passed_on", "columns"]
)
def test_what_was_written_has_no_warning(function: str, library: Path) -> None:
    assert warnings(library, function) == ()
