"""Threads of one block that meet in global memory: what barriers, collectives and fences order.

Each function launches one kernel of 128 threads, of one block and then of two, on arrays of 4096 words.
"""

from pathlib import Path

import pytest
from built_programs import EVERY_WAY, LIBRARY, Compile, marked_lines, races

from grader.simulator.driver import Options

SOURCE = """
#define T threadIdx.x
#define MINE (blockIdx.x * 512 + T)
#define ROW (p + blockIdx.x * 512)

__global__ void lanes_exchange(float* p, float* q) {
  ROW[T] = T;  // lanes_exchange
  q[MINE] = ROW[T ^ 1];  // lanes_exchange
}
__global__ void lanes_exchange_rightly(float* p, float* q) {
  ROW[T] = T;
  __syncwarp();
  q[MINE] = ROW[T ^ 1];
}
__global__ void lanes_shuffle_between(float* p, float* q) {
  ROW[T] = T;  // lanes_shuffle_between
  const float x = __shfl_xor_sync(~0u, T, 1);
  q[MINE] = ROW[T ^ 1] + x;  // lanes_shuffle_between
}
__global__ void warps_exchange(float* p, float* q) {
  ROW[T] = T;  // warps_exchange
  __syncwarp();
  q[MINE] = ROW[T ^ 32];  // warps_exchange
}
__global__ void warps_exchange_rightly(float* p, float* q) {
  ROW[T] = T;
  __syncthreads();
  q[MINE] = ROW[T ^ 32];
}
__global__ void shifted_in_place(float* p, float*) {
  ROW[T] = ROW[T + 1] * 2;  // shifted_in_place
}
__global__ void shifted_rightly(float* p, float*) {
  const float x = ROW[T + 1];
  __syncthreads();
  ROW[T] = x * 2;
}
__global__ void in_place(float* p, float*) {
  ROW[T] = ROW[T] * 2 + 1;
  float4* four = reinterpret_cast<float4*>(ROW + 128) + T % 64;
  if (T < 64) *four = make_float4(four->y, four->x, four->w, four->z);
}
__global__ void transposed(float* p, float* q) {
  ROW[T % 8 * 16 + T / 8] = T;  // transposed
  q[MINE] = ROW[T];  // transposed
}
__global__ void all_the_same(float* p, float* q) {
  *ROW = 5;
  q[MINE] = *ROW;
}
__global__ void sum_of_lane_0(float* p, float* q) {
  const float x = *ROW;  // sum_of_lane_0
  if (T == 0) *ROW = 7;  // sum_of_lane_0
  q[MINE] = x;
}
__global__ void by_another_width(float* p, float* q) {
  ROW[T] = T;  // by_another_width
  const float4* four = reinterpret_cast<float4*>(ROW);
  if (T < 32) q[MINE] = four[T].y;  // by_another_width
}
__global__ void behind_a_fence(float* p, float* q) {
  volatile float* flag = q + 2000 + blockIdx.x;
  if (T == 32) {
    ROW[1] = 3;
    __threadfence_block();
    *flag = 1;
  }
  if (T == 64) {
    while (*flag == 0) {}
    __threadfence_block();
    q[MINE] = ROW[1];
  }
}
__global__ void behind_the_fence_of_another(float* p, float* q) {
  float* flag = q + 2000 + blockIdx.x;
  if (T >= 32) {
    ROW[T] = ROW[T % 32] + T;
    asm volatile("bar.sync 1, 96;" ::: "memory");
    if (T == 32) {
      __threadfence();
      atomicExch(flag, 1);
    }
    return;
  }
  while (atomicAdd(flag, 0) == 0) {}
  __threadfence();
  q[MINE] = ROW[T + 64];
  ROW[T] = 7;
}
__global__ void released_by_another(float* p, float* q) {
  int* flag = reinterpret_cast<int*>(q) + 2000 + blockIdx.x;
  if (T >= 32) {
    ROW[T] = ROW[T % 32] + T;
    asm volatile("bar.sync 1, 96;" ::: "memory");
    if (T == 32) asm volatile("st.release.gpu.global.s32 [%0], 1;" :: "l"(flag) : "memory");
    return;
  }
  int there = 0;
  while (!there) asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(there) : "l"(flag) : "memory");
  q[MINE] = ROW[T + 64];
  ROW[T] = 7;
}
__global__ void without_the_fence(float* p, float* q) {
  float* flag = q + 2000 + blockIdx.x;
  if (T >= 32) {
    ROW[T] = T;  // without_the_fence
    asm volatile("bar.sync 1, 96;" ::: "memory");
    if (T == 32) atomicExch(flag, 1);
    return;
  }
  while (atomicAdd(flag, 0) == 0) {}
  q[MINE] = ROW[T + 64];  // without_the_fence
}
__global__ void named_barriers(float* p, float* q) {
  ROW[T] = T;
  asm volatile("bar.sync %0, 64;" :: "r"(1 + T / 64) : "memory");
  q[MINE] = ROW[T ^ 32];
}
// Two of four warps meet: what they have read before is over for them, and not for the others.
__global__ void others_do_not_meet(float* p, float* q) {
  if (T < 64) {
    q[MINE] = ROW[T];  // others_do_not_meet
    asm volatile("bar.sync 1, 64;" ::: "memory");
  } else {
    ROW[T - 64] = T + 1;  // others_do_not_meet
  }
}
__global__ void those_who_meet(float* p, float* q) {
  if (T >= 64) return;
  const float x = ROW[T ^ 32];
  asm volatile("bar.sync 1, 64;" ::: "memory");
  ROW[T] = x * 2 + 1;
}
__global__ void many_rows_before(float* p, float* q) {
  float x = 0;
  for (int n = 0; n < 100; ++n) x += ROW[(T + n) % 256];  // many_rows_before
  if (T == 5) ROW[6] = 7;  // many_rows_before
  q[MINE] = x;
}

extern "C" int launched(void (*kernel)(float*, float*)) {
  float *p, *q;
  cudaMalloc(&p, 4096 * sizeof(float));
  cudaMalloc(&q, 4096 * sizeof(float));
  for (int launch = 0; launch < 2; ++launch) {
    cudaMemset(p, launch, 4096 * sizeof(float));
    cudaMemset(q, 0, 4096 * sizeof(float));
    kernel<<<launch + 1, 128>>>(p, q);
  }
  return cudaDeviceSynchronize();
}
#define FUNCTION(kernel) extern "C" int run_##kernel() { return launched(kernel); }
"""
RIGHT = (
    *(
        "lanes_exchange_rightly",
        "warps_exchange_rightly",
        "shifted_rightly",
        "in_place",
    ),
    *("all_the_same", "behind_a_fence", "named_barriers"),
    *("behind_the_fence_of_another", "released_by_another", "those_who_meet"),
)
LINES = marked_lines(SOURCE)


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    functions = "\n".join(f"FUNCTION({kernel})" for kernel in (*RIGHT, *LINES))
    return nvcc(SOURCE + functions, "within.so", *LIBRARY)


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize("kernel", RIGHT)
def test_what_is_ordered_is_no_race(kernel: str, options: Options, library: Path) -> None:
    assert races(library, f"run_{kernel}", options, set()) == []


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize("kernel", LINES)
def test_a_race_names_both_lines(kernel: str, options: Options, library: Path) -> None:
    found = races(library, f"run_{kernel}", options, {"race_global"})
    assert found
    assert all(lines == LINES[kernel] for lines in found)
