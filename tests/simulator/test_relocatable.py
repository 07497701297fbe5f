"""Programs whose kernels call device functions of other files: ``nvcc -rdc=true``."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from grader.simulator.simulate import simulate

if TYPE_CHECKING:
    from pathlib import Path

HEADER = """
#pragma once
__device__ float twice(float x);
extern __device__ float offset;
extern __constant__ float table[4];
template <typename T> __device__ __noinline__ T same(T x) { return x * T(3) + T(1); }
"""
PART = """
#include "part.h"
static __device__ int counter = 5;
static __device__ __noinline__ float own(float x) { return x + counter; }
__device__ float offset = 0.5f;
__constant__ float table[4];
__device__ float twice(float x) { if (x == 1) printf("a part\\n"); return same(own(2 * x)) + offset; }
__global__ void add_table(float *y) { y[threadIdx.x] += table[threadIdx.x % 4]; }
"""
MAIN = """
#include <cstdio>
#include "part.h"
static __device__ int counter = 7;
static __device__ __noinline__ float own(float x) { return x - counter; }
__global__ void add_table(float *y);
__global__ void kernel(const float *x, float *y) {
  int i = threadIdx.x;
  if (i == 1) printf("main\\n");
  y[i] = twice(x[i]) + same(own(x[i])) + offset;
}
int main() {
  float host[4] = {0, 1, 2, 3}, table_host[4] = {1, 2, 3, 4}, offset_host = 0.25f, *x;
  cudaMalloc(&x, 2 * sizeof host);
  cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(table, table_host, sizeof table_host);
  cudaMemcpyToSymbol(offset, &offset_host, sizeof offset_host);
  kernel<<<1, 4>>>(x, x + 4);
  add_table<<<1, 4>>>(x + 4);
  cudaMemcpy(host, x + 4, sizeof host, cudaMemcpyDeviceToHost);
  cudaFree(x);
  for (float value : host) printf("%g ", value);
  puts(cudaGetErrorString(cudaGetLastError()));
}
"""


@pytest.mark.parametrize("compress", ["--no-compress", "--compress-mode=default"])
def test_functions_and_variables_of_files_find_each_other(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], compress: str
) -> None:
    """What is static is another one in each file, and so are texts of the same name in PTX."""
    files = {"part.h": HEADER, "part.cu": "#include <cstdio>\n" + PART, "main.cu": MAIN}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    target = "arch=compute_80,code=[compute_80,sm_80]"
    command = ["nvcc", "-rdc=true", "-cudart", "shared", "-gencode", target, "-lineinfo", compress]
    subprocess.run([*command, "main.cu", "part.cu", "-o", "program"], cwd=tmp_path, check=True, timeout=300)
    assert simulate([str(tmp_path / "program")], json_path=None, leak_check=True) == 0
    out = capfd.readouterr()
    assert out.out.splitlines() == ["main", "a part", "-2.5 7.5 17.5 27.5 no error"]
    assert out.err == ""
