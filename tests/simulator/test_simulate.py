"""``grader simulate``: whole programs with a main of their own."""

import json
from pathlib import Path

import pytest
from built_programs import FLAGS, Compile

from grader.simulator.simulate import EXIT_FINDINGS, simulate

PROGRAM = """
#include <cstdio>
#include <cstdlib>
__global__ void scale(float* data, int n, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] *= factor;
}
__global__ void hello() { printf("hello from the device\\n"); }
int main(int argc, char** argv) {
  float host[4] = {1, 2, 3, 4}, *data;
  cudaMalloc(&data, sizeof host);
  cudaMemcpy(data, host, argc > 2 ? 99 : sizeof host, cudaMemcpyHostToDevice);
  cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice);
  scale<<<1, 32>>>(data, 4, 3);
  hello<<<1, 1>>>();
  cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost);
  printf("%g\\n", host[3]);
  return atoi(argv[1]);
}
"""


@pytest.fixture(scope="module")
def program(nvcc: Compile) -> str:
    return str(nvcc(PROGRAM, "program", *FLAGS))


def test_clean_program_keeps_output_and_exit_code(program: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert simulate([program, "0"], json_path=None, leak_check=False) == 0
    out, err = capfd.readouterr()
    assert out == "hello from the device\n12\n"
    assert err == ""
    assert simulate([program, "5"], json_path=None, leak_check=False) == 5


def test_findings_turn_success_into_86(
    program: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    record = tmp_path / "findings.json"
    assert simulate([program, "0", "overflow"], json_path=record, leak_check=False) == EXIT_FINDINGS
    out, err = capfd.readouterr()
    assert out == "hello from the device\n12\n"
    assert "apicheck: memcpy_overflow: cudaMemcpy writes 99 bytes" in err
    written = json.loads(record.read_text())
    assert [finding["kind"] for finding in written["findings"]] == ["memcpy_overflow"]
    assert written["exit_code"] == EXIT_FINDINGS
    assert simulate([program, "5", "overflow"], json_path=None, leak_check=False) == 5


def test_a_long_kernel_needs_a_budget(program: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert simulate([program, "0"], json_path=None, leak_check=False, budget=3) == EXIT_FINDINGS
    err = capfd.readouterr().err
    assert "hang: budget in" in err
    assert "grader simulate --budget" in err
    assert simulate([program, "0"], json_path=None, leak_check=False, budget=1000) == 0


def test_leaks_count_when_asked(program: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert simulate([program, "0"], json_path=None, leak_check=True) == EXIT_FINDINGS
    assert "memcheck: leak: 16 bytes" in capfd.readouterr().err


HANG = """
__global__ void wait(volatile int* flag) {
  while (*flag == 0) {}
}
int main() {
  int* flag;
  cudaMalloc(&flag, sizeof *flag);
  cudaMemset(flag, 0, sizeof *flag);
  wait<<<2, 32>>>(flag);
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 3;
}
"""


def test_hang_is_told_by_the_default_budget(nvcc: Compile, capfd: pytest.CaptureFixture[str]) -> None:
    assert simulate([str(nvcc(HANG, "hang", *FLAGS))], json_path=None, leak_check=False) == 3
    assert "hang: budget in _Z4waitPVi" in capfd.readouterr().err


def test_static_runtime_is_refused_with_the_option(nvcc: Compile, capfd: pytest.CaptureFixture[str]) -> None:
    static = nvcc(PROGRAM, "static", "-arch=sm_80")
    assert simulate([str(static)], json_path=None, leak_check=False) == 2
    assert "nvcc -cudart shared" in capfd.readouterr().err


def test_programs_that_do_not_exist_are_a_usage_error(capfd: pytest.CaptureFixture[str]) -> None:
    assert simulate(["./nothing"], json_path=None, leak_check=False) == 2
    assert "./nothing: no such program" in capfd.readouterr().err


def test_gaps_are_named_and_are_no_success(nvcc: Compile, capfd: pytest.CaptureFixture[str]) -> None:
    source = """
        __global__ void k() {}
        int main() {
          cudaArray_t array;
          cudaChannelFormatDesc description = {};
          k<<<1, 1>>>();
          cudaMallocArray(&array, &description, 4, 4, 0);
        }
    """
    program = nvcc(source, "gap", *FLAGS)
    assert simulate([str(program)], json_path=None, leak_check=False) == 3
    assert "not simulated: runtime call cudaMallocArray" in capfd.readouterr().err


def test_a_record_that_cannot_be_written_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert simulate(["true"], json_path=tmp_path, leak_check=False) == 2
    assert capfd.readouterr().err == f"grader: {tmp_path} cannot be written: Is a directory\n"


def test_a_script_that_cannot_be_run_is_told_from_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "train.py"
    assert simulate([str(script)], json_path=None, leak_check=False) == 2
    script.touch()
    assert simulate([str(script)], json_path=None, leak_check=False) == 2
    assert capfd.readouterr().err.splitlines() == [
        f"grader: {script}: no such program",
        f"grader: {script}: no such program that can be run; name what runs it first, such as: python",
    ]
