// Right: warps that synchronise themselves, masks that tell the truth, lanes that are not there.
#include "../corpus.h"

// --- last_warp_with_syncwarp: the unrolled end of a reduction, reads and writes kept apart
__global__ void block_sum(const float* in, float* out) {
  __shared__ float s[128];
  const int t = threadIdx.x;
  s[t] = in[blockIdx.x * 128 + t];
  __syncthreads();
  if (t < 64) s[t] += s[t + 64];
  __syncthreads();
  if (t < 32) {
    float x = s[t] + s[t + 32];
    for (int step = 16; step > 0; step /= 2) {
      __syncwarp();
      s[t] = x;
      __syncwarp();
      if (t < step) x += s[t + step];
    }
    if (t == 0) out[blockIdx.x] = x;
  }
}
PROGRAM(last_warp_with_syncwarp) {
  const auto in = numbers(512);
  Array<float> din(in), out(4);
  block_sum<<<4, 128>>>(din, out);
  std::vector<float> expected(4);
  for (int i = 0; i < 512; ++i) expected[i / 128] += in[i];
  return close(out.host(), expected);
}

// --- slice_per_warp: every warp has its own part of shared memory and needs no block barrier
__global__ void transpose_small(const float* in, float* out) {
  __shared__ float tile[4][8][5];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int round = 0; round < 3; ++round) {
    tile[warp][lane / 4][lane % 4] = in[round * 128 + threadIdx.x];
    __syncwarp();
    out[round * 128 + threadIdx.x] = tile[warp][lane % 8][lane / 8];
    __syncwarp();
  }
}
PROGRAM(slice_per_warp) {
  const auto in = numbers(384);
  Array<float> din(in), out(384);
  transpose_small<<<1, 128>>>(din, out);
  std::vector<float> expected(384);
  for (int i = 0; i < 384; ++i) expected[i] = in[i / 32 * 32 + i % 8 * 4 + i % 32 / 8];
  return close(out.host(), expected);
}

// --- shuffle_in_a_partial_warp: the mask is voted for before the branch, and only named lanes are read
__global__ void sum_of_some(int n, const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned mask = __ballot_sync(~0u, i < n);
  if (i >= n) return;
  float x = in[i];
  const int lane = threadIdx.x % 32, count = __popc(mask);
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_down_sync(mask, x, step);
    if (lane + step < count) x += other;
  }
  if (lane == 0) atomicAdd(out, x);
}
PROGRAM(shuffle_in_a_partial_warp) {
  const int n = 1000;
  const auto in = numbers(n);
  Array<float> din(in), out(1);
  out.zero();
  sum_of_some<<<8, 128>>>(n, din, out);
  float expected = 0;
  for (const float x : in) expected += x;
  return out.host()[0] == expected;
}

// --- block_of_40: a block whose last warp has eight threads, with masks to match
__global__ void sum_of_40(const int* in, int* out) {
  const int lane = threadIdx.x % 32;
  const unsigned mask = threadIdx.x < 32 ? ~0u : 0xffu;
  int x = in[threadIdx.x];
  for (int step = threadIdx.x < 32 ? 16 : 4; step > 0; step /= 2) x += __shfl_xor_sync(mask, x, step);
  if (lane == 0) atomicAdd(out, x);
}
PROGRAM(block_of_40) {
  const auto in = numbers<int>(40);
  Array<int> din(in), out(1);
  out.zero();
  sum_of_40<<<1, 40>>>(din, out);
  int expected = 0;
  for (const int x : in) expected += x;
  return out.host()[0] == expected;
}

// --- halves_shuffle_apart: both halves of a warp shuffle in different branches, each with its own mask
__global__ void halves(const int* in, int* out) {
  int x = in[threadIdx.x];
  if (threadIdx.x < 16) {
    for (int step = 8; step > 0; step /= 2) x += __shfl_xor_sync(0x0000ffffu, x, step);
  } else {
    for (int step = 8; step > 0; step /= 2) x = max(x, __shfl_xor_sync(0xffff0000u, x, step));
  }
  out[threadIdx.x] = x;
}
PROGRAM(halves_shuffle_apart) {
  const auto in = numbers<int>(32);
  Array<int> din(in), out(32);
  halves<<<1, 32>>>(din, out);
  int sum = 0, top = 0;
  for (int i = 0; i < 16; ++i) {
    sum += in[i];
    top = top > in[16 + i] ? top : in[16 + i];
  }
  std::vector<int> expected(32, sum);
  for (int i = 16; i < 32; ++i) expected[i] = top;
  return close(out.host(), expected);
}

// --- leader_adds_for_active_lanes: warp-aggregated atomics under __activemask
__global__ void filter(int n, const int* in, int* out, int* count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  if (i < n && in[i] % 3 == 0) {
    const unsigned active = __activemask();
    const int leader = __ffs(active) - 1;
    int base = 0;
    if (lane == leader) base = atomicAdd(count, __popc(active));
    base = __shfl_sync(active, base, leader);
    out[base + __popc(active & ((1u << lane) - 1))] = in[i];
  }
}
PROGRAM(leader_adds_for_active_lanes) {
  const int n = 1000;
  const auto in = numbers<int>(n, 100);
  Array<int> din(in), out(n), count(1);
  out.zero();
  count.zero();
  filter<<<4, 256>>>(n, din, out, count);
  int kept = 0;
  long sum = 0, expected = 0;
  for (const int x : in) {
    kept += x % 3 == 0;
    expected += x % 3 == 0 ? x : 0;
  }
  for (const int x : out.host()) sum += x;
  return count.host()[0] == kept && sum == expected;
}

// --- whole_warps_leave: warps without work return before warp-wide operations, not before a barrier
__global__ void rows_by_warps(int rows, int columns, const float* in, float* out) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float x = 0;
  for (int c = lane; c < columns; c += 32) x += in[row * columns + c];
  for (int step = 16; step > 0; step /= 2) x += __shfl_down_sync(~0u, x, step);
  if (lane == 0) out[row] = x;
}
PROGRAM(whole_warps_leave) {
  const int rows = 13, columns = 77;
  const auto in = numbers(rows * columns);
  Array<float> din(in), out(rows);
  rows_by_warps<<<4, 128>>>(rows, columns, din, out);
  std::vector<float> expected(rows);
  for (int i = 0; i < rows * columns; ++i) expected[i / columns] += in[i];
  return close(out.host(), expected);
}
