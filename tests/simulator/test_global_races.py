"""Races between blocks, told page by page as long as a page is one block's, then in finer pieces.

A page has 256 words here; each function launches one kernel on an array that fills eight pages.
"""

from pathlib import Path

import pytest
from built_programs import EVERY_WAY, LIBRARY, Compile, marked_lines, races

from grader.simulator.driver import Options

SOURCE = """
__global__ void rows_of_their_own(float* p, int*) { p[blockIdx.x * 32 + threadIdx.x] += 1; }

__global__ void taken_over(float* p, int*) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    p[t] = 1;
    p[64 + t] = 2;  // taken_over
  }
  if (blockIdx.x == 1) p[128 + t] = 3;
  if (blockIdx.x == 2) p[192 + t] = p[64 + t];  // taken_over
}

__global__ void read_then_written(float* p, int*) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) p[64 + t] = p[t];  // read_then_written
  if (blockIdx.x == 1) p[t] = 7;  // read_then_written
}

__global__ void halves_of_a_warp(float* p, int*) {
  const int t = threadIdx.x;
  p[t / 16 * 512 + blockIdx.x * 16 + t % 16] += 1;
}

__global__ void halves_that_meet(float* p, int*) {
  const int t = threadIdx.x;
  p[t / 16 * 512 + blockIdx.x * 15 + t % 16] = blockIdx.x;  // halves_that_meet
}

__global__ void quarters_of_a_segment(float* p, int*) {
  const int t = threadIdx.x;
  p[t / 8 * 512 + blockIdx.x * 8 + t % 8] += 1;
}

__global__ void segments_of_a_page(float* p, int*) {
  const int t = threadIdx.x;
  for (int row = 0; row < 4; ++row) p[row * 512 + blockIdx.x * 32 + t] += 1;
}

// All blocks look up what one of them changes.
__global__ void table_that_changes(float* p, int*) {
  const int t = threadIdx.x;
  float x = 0;
  for (int n = 0; n < 3; ++n) x += p[(t * 7 + n * blockIdx.x) % 32 * 3];  // table_that_changes
  if (blockIdx.x == 20 && t == 0) p[9] = 5;  // table_that_changes
  if (x > 5000) p[1024] = x;
}

__global__ void handed_over(float* p, int* flag) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    p[t] = 1;
    p[64 + t] = 2;
    __threadfence();
    __syncwarp();
    if (t == 0) atomicExch(flag, 1);
    p[128 + t] = 3;
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence();
    p[256 + t] = p[t] + p[64 + t];
  }
}

__global__ void too_late(float* p, int* flag) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    p[t] = 1;
    __threadfence();
    __syncwarp();
    if (t == 0) atomicExch(flag, 1);
    p[128 + t] = 3;  // too_late
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence();
    if (p[t] + p[128 + t] > 9) *flag = 2;  // too_late
  }
}

__global__ void fenced_for_its_block(float* p, int* flag) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    p[t] = 1;  // fenced_for_its_block
    __threadfence_block();
    __syncwarp();
    if (t == 0) atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence();
    if (p[t] > 9) *flag = 2;  // fenced_for_its_block
  }
}

// What a block has read may be overwritten by who hears that it has, without a fence; what it wrote may not.
__global__ void read_and_told(float* p, int* flag) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    const int bad = __syncthreads_or(p[t] > 5000);
    if (t == 0) *static_cast<volatile int*>(flag) = 1 + bad;
  } else {
    while (*static_cast<volatile int*>(flag) == 0) {}
    p[t] = 7;
  }
}

__global__ void told_and_read(float* p, int* flag) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    if (t == 0) *static_cast<volatile int*>(flag) = 1;
    __syncwarp();
    if (p[t] > 5000) *flag = 2;  // told_and_read
  } else {
    while (*static_cast<volatile int*>(flag) == 0) {}
    p[t] = 7;  // told_and_read
  }
}

__global__ void written_and_told(float* p, int* flag) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    p[t] = 7;  // written_and_told
    __syncwarp();
    if (t == 0) *static_cast<volatile int*>(flag) = 1;
  } else {
    while (*static_cast<volatile int*>(flag) == 0) {}
    p[t] = 8;  // written_and_told
  }
}

// Through the read-only cache: what is written before it is read, by whom else ever, is stale there.
__global__ void own_word_back(float* p, int* flag) {
  const int n = blockIdx.x * 32 + threadIdx.x;
  p[n] = n;  // own_word_back
  if (__ldg(p + n) > 5000) *flag = 1;  // own_word_back
}

__global__ void row_back(float* p, int* flag) {
  const int n = blockIdx.x * 32 + threadIdx.x, other = blockIdx.x * 32 + (threadIdx.x * 7 & 31);
  p[n] = n;  // row_back
  __syncthreads();
  if (__ldg(p + other) > 5000) *flag = 1;  // row_back
}

__global__ void counted(float* p, int* flag) {
  if (threadIdx.x == 0) atomicAdd(p + blockIdx.x * 32, 1.0f);  // counted
  __syncthreads();
  if (__ldg(p + blockIdx.x * 32) > 5000) *flag = 1;  // counted
}

__global__ void from_another_block(float* p, int* flag) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    p[t] = 1;  // from_another_block
    __threadfence();
    __syncwarp();
    if (t == 0) atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence();
    if (__ldg(p + t) > 5000) *flag = 2;  // from_another_block
  }
}

__global__ void in_place(float* p, int*) {
  const int n = blockIdx.x * 32 + threadIdx.x;
  p[n] = __ldg(p + n) + 1;
}

template <class Kernel>
int launched(Kernel kernel, int blocks) {
  float* data;
  int* flag;
  cudaMalloc(&data, 2048 * sizeof(float));
  cudaMalloc(&flag, sizeof(int));
  cudaMemset(data, 0, 2048 * sizeof(float));
  cudaMemset(flag, 0, sizeof(int));
  for (int launch = 0; launch < 2; ++launch) {  // the second finds what the first has left
    kernel<<<blocks, 32>>>(data, flag);
    cudaMemset(flag, 0, sizeof(int));
  }
  return cudaDeviceSynchronize();
}
#define FUNCTION(kernel, blocks) extern "C" int run_##kernel() { return launched(kernel, blocks); }
FUNCTION(rows_of_their_own, 64)
FUNCTION(taken_over, 3)
FUNCTION(read_then_written, 2)
FUNCTION(halves_of_a_warp, 32)
FUNCTION(halves_that_meet, 8)
FUNCTION(quarters_of_a_segment, 32)
FUNCTION(segments_of_a_page, 16)
FUNCTION(table_that_changes, 64)
FUNCTION(handed_over, 2)
FUNCTION(too_late, 2)
FUNCTION(fenced_for_its_block, 2)
FUNCTION(read_and_told, 2)
FUNCTION(told_and_read, 2)
FUNCTION(written_and_told, 2)
FUNCTION(own_word_back, 64)
FUNCTION(row_back, 64)
FUNCTION(counted, 64)
FUNCTION(from_another_block, 2)
FUNCTION(in_place, 64)
"""
LINES = marked_lines(SOURCE)
RIGHT = (
    *("rows_of_their_own", "halves_of_a_warp", "quarters_of_a_segment", "segments_of_a_page"),
    *("handed_over", "read_and_told", "in_place"),
)
STALE = ("own_word_back", "row_back", "counted", "from_another_block")


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "races.so", *LIBRARY)


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize("kernel", RIGHT)
def test_blocks_that_share_pages_and_no_words_do_not_race(
    kernel: str, options: Options, library: Path
) -> None:
    assert races(library, f"run_{kernel}", options, {"race_global"}) == []


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize("kernel", sorted(LINES.keys() - STALE))
def test_a_race_names_both_lines_whoever_had_the_page_before(
    kernel: str, options: Options, library: Path
) -> None:
    found = races(library, f"run_{kernel}", options, {"race_global"})
    assert found
    assert all(lines == LINES[kernel] for lines in found)


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize("kernel", STALE)
def test_the_read_only_cache_does_not_see_what_the_launch_has_written(
    kernel: str, options: Options, library: Path
) -> None:
    assert races(library, f"run_{kernel}", options, {"stale_read"}) == [LINES[kernel]]
