"""Races in shared memory that all lanes read in turns, as blocks read their few sums.

Each function launches one kernel with one block; what each thread computes goes to its own place.
"""

from pathlib import Path

import pytest
from built_programs import LIBRARY, Compile, marked_lines, races

from grader.simulator.driver import Options, Order

SOURCE = """
template <class Kernel>
int launched(Kernel kernel) {
  float* out;
  cudaMalloc(&out, 96 * sizeof(float));
  kernel<<<1, 96>>>(out);
  return cudaDeviceSynchronize();
}
#define KERNEL(name) \\
  __global__ void name(float* out); \\
  extern "C" int run_##name() { return launched(name); } \\
  __global__ void name(float* out)
#define SUMS \\
  __shared__ float sums[8]; \\
  const int t = threadIdx.x, lane = t % 32; \\
  if (t < 8) sums[t] = t; \\
  __syncthreads();

KERNEL(a_lane_writes_what_others_read) {
  SUMS
  if (t >= 32) return;
  const float read = sums[lane % 8];  // a_lane_writes_what_others_read
  if (t == 3) sums[3] = 9;  // a_lane_writes_what_others_read
  out[t] = read;
}

KERNEL(a_lane_of_the_second_turn_writes) {
  SUMS
  if (t >= 32) return;
  const float read = sums[lane % 8];  // a_lane_of_the_second_turn_writes
  if (t == 11) sums[3] = 9;  // a_lane_of_the_second_turn_writes
  out[t] = read;
}

KERNEL(the_last_warp_writes_what_all_have_read) {
  SUMS
  const float read = sums[lane % 4];  // the_last_warp_writes_what_all_have_read
  if (t == 66) sums[2] = 9;  // the_last_warp_writes_what_all_have_read
  out[t] = read;
}

KERNEL(another_warp_writes_what_one_has_read_twice) {
  SUMS
  float read = 0;
  if (t < 32) {
    read = sums[lane % 8];
    __syncwarp();
    read += sums[lane % 8];  // another_warp_writes_what_one_has_read_twice
  } else if (t == 33) {
    sums[1] = 9;  // another_warp_writes_what_one_has_read_twice
  }
  out[t] = read;
}

KERNEL(two_warps_meet_and_the_third_writes) {
  SUMS
  float read = 0;
  if (t < 64) {
    read = sums[lane % 8];  // two_warps_meet_and_the_third_writes
    asm volatile("bar.sync 1, 64;" ::: "memory");
  } else if (t == 66) {
    sums[2] = 9;  // two_warps_meet_and_the_third_writes
  }
  out[t] = read;
}

KERNEL(two_warps_meet_and_one_of_them_writes) {
  SUMS
  if (t >= 64) return;
  const float read = sums[lane % 8];
  asm volatile("bar.sync 1, 64;" ::: "memory");
  if (t == 34) sums[2] = read + 9;
  out[t] = read;
}

KERNEL(barriers_between_reads_and_writes) {
  SUMS
  float read = 0;
  for (int turn = 0; turn < 3; ++turn) {
    read += sums[lane % 8];
    __syncthreads();
    if (lane == 5 && t / 32 == turn) sums[5] = read;
    __syncthreads();
    read += sums[lane % 4 + 4];
    __syncthreads();
    if (t < 8) sums[t] += read;
    __syncthreads();
  }
  out[t] = read;
}

KERNEL(a_warp_meets_between_its_reads_and_writes) {
  SUMS
  if (t >= 32) return;
  float read = sums[lane % 8];
  __syncwarp();
  if (lane == 5) sums[5] = read;
  __syncwarp();
  read += sums[lane % 8];
  __syncwarp();
  if (lane == 13) sums[5] = read;
  out[t] = read;
}
"""
LINES = marked_lines(SOURCE)
RIGHT = (
    "barriers_between_reads_and_writes",
    "a_warp_meets_between_its_reads_and_writes",
    "two_warps_meet_and_one_of_them_writes",
)
KINDS = {"race_shared", "race_warp"}
EITHER_WAY = [
    pytest.param(Options(order=order), id=order.name.lower()) for order in (Order.PROGRAM, Order.REVERSED)
]


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "races.so", *LIBRARY)


@pytest.mark.parametrize("options", EITHER_WAY)
@pytest.mark.parametrize("kernel", LINES)
def test_a_write_races_with_whoever_has_read_in_whatever_turn(
    kernel: str, options: Options, library: Path
) -> None:
    found = races(library, f"run_{kernel}", options, KINDS)
    assert found
    assert all(lines == LINES[kernel] for lines in found)


@pytest.mark.parametrize("options", EITHER_WAY)
@pytest.mark.parametrize("kernel", RIGHT)
def test_reads_in_turns_that_are_over_do_not_race(kernel: str, options: Options, library: Path) -> None:
    assert races(library, f"run_{kernel}", options, KINDS) == []
