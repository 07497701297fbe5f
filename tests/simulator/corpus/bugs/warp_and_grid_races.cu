// Lanes of one warp that trust to run in step, and blocks that trust each other's order.
#include "../corpus.h"

// --- last_warp_unrolled: the last steps of a reduction as written before Volta, without __syncwarp
__global__ void block_sum(const float* in, float* out) {
  __shared__ float s[128];
  const int t = threadIdx.x;
  s[t] = in[blockIdx.x * 128 + t];
  __syncthreads();
  if (t < 64) s[t] += s[t + 64];
  __syncthreads();
  if (t < 32) {
    s[t] += s[t + 32];
    for (int step = 16; step > 0; step /= 2) s[t] += s[t + step];  // BUG racecheck race_warp
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
PROGRAM(last_warp_unrolled) {
  Array<float> in(numbers(512)), out(4);
  block_sum<<<4, 128>>>(in, out);
  finish();
  return true;
}

// --- transpose_in_a_warp: a tile that belongs to one warp; right as long as its lanes run in step
__global__ void transpose_small(const float* in, float* out) {
  __shared__ float tile[4][8][5];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  tile[warp][lane / 4][lane % 4] = in[threadIdx.x];  // BUG racecheck race_warp
  out[threadIdx.x] = tile[warp][lane % 8][lane / 8];  // BUG racecheck race_warp
}
PROGRAM(transpose_in_a_warp) {
  const auto in = numbers(128);
  Array<float> din(in), out(128);
  transpose_small<<<1, 128>>>(din, out);
  finish();
  return true;
}

// --- leader_tells_its_warp: lane 0 leaves an offset in shared memory and the others pick it up
__global__ void compact(int n, const int* in, int* out, int* count) {
  __shared__ int base[4];
  const int i = blockIdx.x * blockDim.x + threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool keep = i < n && in[i] > 7;
  const unsigned votes = __ballot_sync(~0u, keep);
  if (lane == 0) base[warp] = atomicAdd(count, __popc(votes));  // BUG racecheck race_warp
  if (keep) out[base[warp] + __popc(votes & ((1u << lane) - 1))] = in[i];  // BUG racecheck race_warp
}
PROGRAM(leader_tells_its_warp) {
  const int n = 500;
  Array<int> in(numbers<int>(n)), out(n), count(1);
  count.zero();
  compact<<<4, 128>>>(n, in, out, count);
  finish();
  return true;
}

// --- grid_stencil_in_place: each block reads a cell that its neighbour overwrites in the same launch
__global__ void smooth(int n, float* data) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float left = i > 0 ? data[i - 1] : 0;  // BUG racecheck race_global
  const float right = i + 1 < n ? data[i + 1] : 0;  // BUG racecheck race_global
  __syncthreads();
  if (i < n) data[i] = 0.5f * (left + right);  // BUG racecheck race_global
}
PROGRAM(grid_stencil_in_place) {
  const int n = 1024;
  Array<float> data(numbers(n));
  smooth<<<8, 128>>>(n, data);
  finish();
  return true;
}

// --- sum_without_atomics: every block adds its part to the sum with +=
__global__ void add_parts(const float* in, float* sum) {
  float x = in[blockIdx.x * 32 + threadIdx.x];
  for (int step = 16; step > 0; step /= 2) x += __shfl_down_sync(~0u, x, step);
  if (threadIdx.x == 0) *sum += x;  // BUG racecheck race_global
}
PROGRAM(sum_without_atomics) {
  Array<float> in(numbers(512)), sum(1);
  sum.zero();
  add_parts<<<16, 32>>>(in, sum);
  finish();
  return true;
}

// --- last_block_by_number: the block with the highest number adds up what it takes to be there
__global__ void sum_in_one_launch(const float* in, float* parts, float* sum) {
  float x = in[blockIdx.x * 32 + threadIdx.x];
  for (int step = 16; step > 0; step /= 2) x += __shfl_down_sync(~0u, x, step);
  if (threadIdx.x == 0) parts[blockIdx.x] = x;  // BUG racecheck race_global
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) {
    float all = 0;
    for (int b = 0; b < gridDim.x; ++b) all += parts[b];  // BUG racecheck race_global
    *sum = all;
  }
}
PROGRAM(last_block_by_number) {
  Array<float> in(numbers(256)), parts(8), sum(1);
  parts.zero();
  sum_in_one_launch<<<8, 32>>>(in, parts, sum);
  finish();
  return true;
}

// --- lanes_share_a_counter: one warp counts with ++, and lanes meet in the same bin
__global__ void count_in_a_warp(const int* in, int* out) {
  __shared__ int bins[16];
  if (threadIdx.x < 16) bins[threadIdx.x] = 0;
  __syncwarp();
  bins[in[threadIdx.x]]++;  // BUG racecheck race_warp
  __syncwarp();
  if (threadIdx.x < 16) out[threadIdx.x] = bins[threadIdx.x];
}
PROGRAM(lanes_share_a_counter) {
  Array<int> in(numbers<int>(32)), out(16);
  count_in_a_warp<<<1, 32>>>(in, out);
  finish();
  return true;
}

// --- fence_without_a_flag: a fence orders one block's writes, but nothing tells the other block that they are there
__global__ void share_maximum(const float* in, float* tops, float* out) {
  const int t = threadIdx.x;
  float x = in[blockIdx.x * 32 + t];
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
  if (t == 0) tops[blockIdx.x] = x;  // BUG racecheck race_global
  __threadfence();
  float top = x;
  for (int b = 0; b < gridDim.x; ++b) top = fmaxf(top, tops[b]);  // BUG racecheck race_global
  out[blockIdx.x * 32 + t] = in[blockIdx.x * 32 + t] - top;
}
PROGRAM(fence_without_a_flag) {
  Array<float> in(numbers(256)), tops(8), out(256);
  tops.zero();
  share_maximum<<<8, 32>>>(in, tops, out);
  finish();
  return true;
}

// --- tiles_overlap: tiles of 128 at steps of 120, and each block stores its own sums into the overlap
__global__ void neighbour_sums(int n, const float* in, float* out) {
  const int i = blockIdx.x * 120 + threadIdx.x;
  if (i + 1 < n) out[i] = in[i] + in[i + 1] * (threadIdx.x + 1);  // BUG racecheck race_global
}
PROGRAM(tiles_overlap) {
  const int n = 600;
  Array<float> in(numbers(n)), out(n);
  neighbour_sums<<<5, 128>>>(n, in, out);
  finish();
  return true;
}
