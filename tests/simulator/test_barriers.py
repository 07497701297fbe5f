"""Threads that have left the kernel may be missing at a barrier; those that wait elsewhere may not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from built_programs import EVERY_WAY, FLAGS, LIBRARY, Compile, call, marked_lines

from grader.records.findings import Severity
from grader.records.sentences import sentence
from grader.simulator.driver import Options, Simulator
from grader.simulator.simulate import simulate

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """
__global__ void reverse(int n, int* data) {
  __shared__ int slots[96];
  const int t = threadIdx.x;
  if (t >= n) return;
  slots[t] = data[t];
  if (blockIdx.x == 1 && t < 32) {
    __syncthreads();  // branch
    slots[t] += 1;
  }
  __syncthreads();  // all
  data[blockIdx.x * n + t] = slots[n - 1 - t];
}
static int reversed(int blocks) {
  int *data, host[160];
  for (int i = 0; i < 160; ++i) host[i] = i;
  cudaMalloc(&data, sizeof host);
  cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice);
  reverse<<<blocks, 96>>>(80, data);
  if (const int error = cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost)) return error;
  for (int i = 0; i < 80; ++i) {
    if (host[i] != 79 - i) return 1;
  }
  cudaFree(data);
  return 0;
}
extern "C" int one_block() { return reversed(1); }
extern "C" int two_blocks() { return reversed(2); }
int main() { return reversed(1); }
"""
LINES = {word: min(lines) for word, lines in marked_lines(SOURCE).items()}


@pytest.mark.parametrize("options", EVERY_WAY)
def test_threads_that_have_left_are_only_a_warning(options: Options, nvcc: Compile) -> None:
    library = nvcc(SOURCE, "barriers.so", *LIBRARY)
    with Simulator(options) as simulator:
        simulator.load(library)
        assert call(simulator, library, "one_block") == 0
        (finding,) = simulator.take_findings()
        assert (finding.kind, finding.line) == ("divergent_barrier", LINES["all"])
        assert finding.severity is Severity.WARNING
        assert not finding.counts
        assert "only 80 of 96 threads" in str(sentence(finding))


def test_threads_at_another_barrier_are_an_error_beside_it(nvcc: Compile) -> None:
    library = nvcc(SOURCE, "barriers.so", *LIBRARY)
    with Simulator() as simulator:
        simulator.load(library)
        call(simulator, library, "two_blocks")
        found = {
            finding.severity: finding for finding in simulator.take_findings() if finding.tool == "synccheck"
        }
    assert set(found) == {Severity.WARNING, Severity.ERROR}
    assert found[Severity.ERROR].counts
    assert found[Severity.ERROR].kind == "divergent_barrier"
    assert "wait at different __syncthreads()" in str(sentence(found[Severity.ERROR]))


def test_a_warning_leaves_a_program_its_exit_code(nvcc: Compile, capfd: pytest.CaptureFixture[str]) -> None:
    program: Path = nvcc(SOURCE, "barriers", *FLAGS)
    assert simulate([str(program)], json_path=None, leak_check=False) == 0
    assert "warning: synccheck: divergent_barrier in" in capfd.readouterr().err
