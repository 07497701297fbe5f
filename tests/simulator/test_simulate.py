"""``grader simulate``: whole programs with a main of their own."""

import json
import re
import signal
import subprocess
import sys
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


MANY = """
#include <cstdio>
__global__ void quick() {}
__global__ void slow(volatile int* p) {
  while (p[64] == 0) {}
}
int main() {
  int* p;
  cudaMalloc(&p, 64 * sizeof *p);
  cudaMemset(p, 0, 99 * sizeof *p);
  for (int n = 0; n < 3; ++n) quick<<<1, 1>>>();
  cudaGetLastError();
  cudaDeviceSynchronize();
  puts("ready");
  fflush(stdout);
  cudaMalloc(&p, 65 * sizeof *p);
  cudaMemset(p, 0, 65 * sizeof *p);
  slow<<<1, 1>>>(p);
  return cudaDeviceSynchronize();
}
"""
LAUNCHES = {"_Z5quickv": 3, "_Z4slowPVi": 1}


def test_a_program_whose_time_is_up_leaves_its_record(
    nvcc: Compile, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program, record = str(nvcc(MANY, "many", *FLAGS)), tmp_path / "record.json"
    code = simulate([program], json_path=record, leak_check=False, budget=10**15, seconds=5)
    assert code == 124
    written = json.loads(record.read_text())
    assert written["launches"] == LAUNCHES
    assert written["exit_code"] == 124
    assert [finding["kind"] for finding in written["findings"]] == ["memcpy_overflow"]
    err = capfd.readouterr().err
    assert "memcpy_overflow" in err
    assert err.endswith("grader: the program was ended after 5 s, as --seconds asks\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_program_leaves_its_record(
    nvcc: Compile, tmp_path: Path, number: signal.Signals
) -> None:
    program, record = str(nvcc(MANY, "many", *FLAGS)), tmp_path / "record.json"
    options = ["--budget", str(10**15), "--json", str(record)]
    command = [sys.executable, "-P", "-m", "grader", "simulate", *options]
    process = subprocess.Popen(
        [*command, "--", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "memcpy_overflow" in err
    assert "the program was interrupted" in err
    written = json.loads(record.read_text())
    assert written["launches"]["_Z5quickv"] == 3
    assert [finding["kind"] for finding in written["findings"]] == ["memcpy_overflow"]


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


REFUSED = {
    "launches by kernels": (
        """
        __global__ void child(int* p) { *p = 1; }
        __global__ void parent(int* p) { child<<<1, 1>>>(p); }
        int main() {
          int* p;
          cudaMalloc(&p, sizeof *p);
          parent<<<1, 1>>>(p);
          return cudaGetLastError() == cudaSuccess;
        }
        """,
        ["-rdc=true", "-lcudadevrt"],
        "the simulator does not know kernels that launch kernels: the instruction 'call.uni ",
    ),
    "textures": (
        """
        __global__ void textured(cudaTextureObject_t t, float* p) { *p = tex1Dfetch<float>(t, 0); }
        int main() {
          float* p;
          cudaMalloc(&p, sizeof *p);
          textured<<<1, 1>>>(0, p);
          return cudaDeviceSynchronize() == cudaSuccess;
        }
        """,
        [],
        "the simulator does not know textures: the instruction 'tex.1d.v4.f32.s32",
    ),
    "surfaces": (
        """
        __global__ void surfaced(cudaSurfaceObject_t t, int* p) { *p = surf1Dread<int>(t, 0); }
        int main() {
          int* p;
          cudaMalloc(&p, sizeof *p);
          surfaced<<<1, 1>>>(0, p);
          return cudaDeviceSynchronize() == cudaSuccess;
        }
        """,
        [],
        "the simulator does not know surfaces: the instruction 'suld.b.1d",
    ),
    "wgmma": (
        """
        __global__ void groups(int* p) {
          asm volatile("wgmma.fence.sync.aligned;");
          *p = 1;
        }
        int main() {
          int* p;
          cudaMalloc(&p, sizeof *p);
          groups<<<1, 1>>>(p);
          return cudaDeviceSynchronize() == cudaSuccess;
        }
        """,
        ["-gencode", "arch=compute_90a,code=compute_90a", "--no-compress", "-lineinfo", "-cudart", "shared"],
        "the simulator does not know wgmma: the instruction 'wgmma.fence.sync.aligned'",
    ),
    "TMA": (
        """
        __global__ void bulk(int* p) {
          asm volatile("cp.async.bulk.commit_group;");
          *p = 1;
        }
        int main() {
          int* p;
          cudaMalloc(&p, sizeof *p);
          bulk<<<1, 1>>>(p);
          return cudaDeviceSynchronize() == cudaSuccess;
        }
        """,
        ["-gencode", "arch=compute_90,code=compute_90", "--no-compress", "-lineinfo", "-cudart", "shared"],
        "the simulator does not know TMA: the instruction 'cp.async.bulk.commit_group'",
    ),
    "clusters": (
        """
        __global__ void __cluster_dims__(2) clustered(int* p) { *p = 1; }
        int main() {
          int* p;
          cudaMalloc(&p, sizeof *p);
          clustered<<<2, 1>>>(p);
          return cudaGetLastError() == cudaSuccess;
        }
        """,
        ["-gencode", "arch=compute_90,code=compute_90", "--no-compress", "-lineinfo", "-cudart", "shared"],
        "the simulator does not know thread block clusters: the directive '.explicitcluster'",
    ),
}


@pytest.mark.parametrize("feature", REFUSED)
def test_what_is_not_supported_is_named_with_its_kernel(
    nvcc: Compile, capfd: pytest.CaptureFixture[str], feature: str
) -> None:
    source, flags, said = REFUSED[feature]
    given = flags if "-cudart" in flags else [*FLAGS, *flags]
    program = nvcc(source, feature, *given)
    assert simulate([str(program)], json_path=None, leak_check=False) == 3
    (line,) = capfd.readouterr().err.splitlines()
    assert f"grader: not simulated: {said}" in line
    assert re.search(r"_Z\d+\w+", line)


def test_a_record_that_cannot_be_written_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert simulate(["true"], json_path=tmp_path, leak_check=False) == 2
    assert capfd.readouterr().err == f"grader: {tmp_path} cannot be written: Is a directory\n"


def test_a_script_that_cannot_be_run_is_told_from_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "train.sh"
    assert simulate([str(script)], json_path=None, leak_check=False) == 2
    script.touch()
    assert simulate([str(script)], json_path=None, leak_check=False) == 2
    assert capfd.readouterr().err.splitlines() == [
        f"grader: {script}: no such program",
        f"grader: {script}: no such program that can be run; name what runs it first, such as: python",
    ]
