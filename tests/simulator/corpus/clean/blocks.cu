// Right: barriers and shared memory in shapes that look like mistakes.
#include "../corpus.h"
#include <cuda_pipeline.h>

// --- double_buffer: one barrier per step is enough, because the next write goes to the other buffer
__global__ void scan(const int* in, int* out) {
  __shared__ int s[2][256];
  const int t = threadIdx.x;
  int from = 0;
  s[0][t] = in[t];
  for (int step = 1; step < 256; step *= 2, from ^= 1) {
    __syncthreads();
    s[from ^ 1][t] = s[from][t] + (t >= step ? s[from][t - step] : 0);
  }
  out[t] = s[from][t];
}
PROGRAM(double_buffer) {
  const auto in = numbers<int>(256);
  Array<int> din(in), out(256);
  scan<<<1, 256>>>(din, out);
  auto expected = in;
  for (int i = 1; i < 256; ++i) expected[i] += expected[i - 1];
  return close(out.host(), expected);
}

// --- uniform_condition: a barrier under a condition that is the same for the whole block
__global__ void reverse_some(int n, const float* in, float* out) {
  __shared__ float s[128];
  const int first = blockIdx.x * 128, t = threadIdx.x;
  const bool whole = first + 128 <= n;
  float x = first + t < n ? in[first + t] : 0;
  if (whole && blockIdx.x % 2 == 0) {
    s[t] = x;
    __syncthreads();
    x = s[127 - t];
  }
  if (first + t < n) out[first + t] = x;
}
PROGRAM(uniform_condition) {
  const int n = 500;
  const auto in = numbers(n);
  Array<float> din(in), out(n);
  reverse_some<<<4, 128>>>(n, din, out);
  auto expected = in;
  for (int block : {0, 2}) {
    for (int t = 0; t < 128; ++t) expected[block * 128 + t] = in[block * 128 + 127 - t];
  }
  return close(out.host(), expected);
}

// --- loop_with_equal_rounds: barriers in a loop whose number of rounds is rounded up for all threads
__global__ void running_maximum(int n, const float* in, float* out) {
  __shared__ float s[128];
  float top = 0;
  for (int first = 0; first < n; first += 128) {
    const int i = first + threadIdx.x;
    s[threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    top = fmaxf(top, s[127 - threadIdx.x]);
    __syncthreads();
  }
  out[threadIdx.x] = top;
}
PROGRAM(loop_with_equal_rounds) {
  const int n = 300;
  const auto in = numbers(n, 1000);
  Array<float> din(in), out(128);
  running_maximum<<<1, 128>>>(n, din, out);
  std::vector<float> expected(128);
  for (int i = 0; i < n; ++i) expected[127 - i % 128] = std::fmax(expected[127 - i % 128], in[i]);
  return close(out.host(), expected);
}

// --- padded_tile: a transpose whose padding column is never written
__global__ void transpose(int rows, int columns, const float* in, float* out) {
  __shared__ float tile[32][33];
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32;
  for (int r = threadIdx.y; r < 32; r += 8) {
    if (y + r < rows && x < columns) tile[r][threadIdx.x] = in[(y + r) * columns + x];
  }
  __syncthreads();
  const int u = blockIdx.y * 32 + threadIdx.x, v = blockIdx.x * 32;
  for (int r = threadIdx.y; r < 32; r += 8) {
    if (v + r < columns && u < rows) out[(v + r) * rows + u] = tile[threadIdx.x][r];
  }
}
PROGRAM(padded_tile) {
  const int rows = 50, columns = 70;
  const auto in = numbers(rows * columns);
  Array<float> din(in), out(rows * columns);
  transpose<<<dim3(3, 2), dim3(32, 8)>>>(rows, columns, din, out);
  std::vector<float> expected(rows * columns);
  for (int i = 0; i < rows * columns; ++i) expected[i % columns * rows + i / columns] = in[i];
  return close(out.host(), expected);
}

// --- everybody_raises_the_flag: many threads store the same value to one flag
__global__ void any_above(int n, const float* in, float limit, int* result) {
  __shared__ int found;
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    if (in[i] > limit) found = 1;
  }
  __syncthreads();
  if (threadIdx.x == 0) *result = found;
}
PROGRAM(everybody_raises_the_flag) {
  Array<float> in(numbers(1000));
  Array<int> result(2);
  any_above<<<1, 256>>>(1000, in, 5, result);
  any_above<<<1, 256>>>(1000, in, 50, result + 1);
  return close(result.host(), {1, 0});
}

// --- shared_histogram: zeroed, a barrier, atomics, a barrier, global atomics
__global__ void histogram(int n, const int* values, unsigned* bins) {
  __shared__ unsigned local[16];
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[values[i]], 1u);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
PROGRAM(shared_histogram) {
  const int n = 5000;
  const auto values = numbers<int>(n);
  Array<int> dv(values);
  Array<unsigned> bins(16);
  bins.zero();
  histogram<<<4, 256>>>(n, dv, bins);
  std::vector<unsigned> expected(16);
  for (const int v : values) ++expected[v];
  return close(bins.host(), expected);
}

// --- carved_dynamic_memory: three arrays of three types in one block of dynamic shared memory
__global__ void carve(const float* in, double* out) {
  extern __shared__ double memory[];
  double* sums = memory;
  float* values = reinterpret_cast<float*>(sums + 64);
  unsigned char* flags = reinterpret_cast<unsigned char*>(values + 64);
  const int t = threadIdx.x;
  values[t] = in[t];
  flags[t] = in[t] > 7;
  __syncthreads();
  sums[t] = flags[63 - t] ? values[63 - t] : 0.5;
  __syncthreads();
  out[t] = sums[t ^ 1];
}
PROGRAM(carved_dynamic_memory) {
  const auto in = numbers(64);
  Array<float> din(in);
  Array<double> out(64);
  carve<<<1, 64, 64 * (sizeof(double) + sizeof(float) + 1)>>>(din, out);
  std::vector<double> expected(64);
  for (int t = 0; t < 64; ++t) expected[t] = in[63 - (t ^ 1)] > 7 ? in[63 - (t ^ 1)] : 0.5;
  return close(out.host(), expected);
}

// --- scratch_used_twice: two reductions share their slots, with a barrier between them
__device__ float block_reduce(float x, float* slots, bool maximum) {
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(~0u, x, step);
    x = maximum ? fmaxf(x, other) : x + other;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = x;
  __syncthreads();
  x = slots[0];
  for (int w = 1; w < blockDim.x / 32; ++w) x = maximum ? fmaxf(x, slots[w]) : x + slots[w];
  return x;
}
__global__ void softmax(int columns, float* data) {
  __shared__ float slots[32];
  float* row = data + blockIdx.x * columns;
  float top = -INFINITY, sum = 0;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) top = fmaxf(top, row[c]);
  top = block_reduce(top, slots, true);
  for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += expf(row[c] - top);
  sum = block_reduce(sum, slots, false);
  for (int c = threadIdx.x; c < columns; c += blockDim.x) row[c] = expf(row[c] - top) / sum;
}
PROGRAM(scratch_used_twice) {
  const int rows = 4, columns = 500;
  const auto in = numbers(rows * columns);
  Array<float> data(in);
  softmax<<<rows, 128>>>(columns, data);
  std::vector<double> expected(in.begin(), in.end());
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int c = 0; c < columns; ++c) sum += expected[r * columns + c] = std::exp(expected[r * columns + c] - 15);
    for (int c = 0; c < columns; ++c) expected[r * columns + c] /= sum;
  }
  const auto got = data.host();
  return close(std::vector<double>(got.begin(), got.end()), expected, 1e-6);
}

// --- producer_and_consumer: named barriers hand a box from warp to warp
template <int number>
__device__ void arrive() { asm volatile("barrier.arrive %0, 64;" ::"n"(number) : "memory"); }
template <int number>
__device__ void wait() { asm volatile("barrier.sync %0, 64;" ::"n"(number) : "memory"); }
__global__ void hand_over(int rounds, const float* in, float* out) {
  __shared__ float box[32];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int r = 0; r < rounds; ++r) {
      wait<2>();
      box[lane] = in[r * 32 + lane];
      arrive<1>();
    }
  } else {
    float sum = 0;
    for (int r = 0; r < rounds; ++r) {
      arrive<2>();
      wait<1>();
      sum += box[31 - lane];
    }
    out[lane] = sum;
  }
}
PROGRAM(producer_and_consumer) {
  const int rounds = 5;
  const auto in = numbers(32 * rounds);
  Array<float> din(in), out(32);
  hand_over<<<1, 64>>>(rounds, din, out);
  std::vector<float> expected(32);
  for (int i = 0; i < 32 * rounds; ++i) expected[31 - i % 32] += in[i];
  return close(out.host(), expected);
}

// --- vote_of_the_block: __syncthreads_or and __syncthreads_count are barriers, too
__global__ void settle(const int* in, int* out) {
  __shared__ int s[128];
  const int t = threadIdx.x;
  s[t] = in[t];
  int rounds = 0;
  while (__syncthreads_or(s[t] > 0)) {
    s[t] -= s[t] > 0;
    ++rounds;
  }
  const int odd = __syncthreads_count(in[t] % 2);
  out[t] = rounds * 1000 + odd;
}
PROGRAM(vote_of_the_block) {
  const auto in = numbers<int>(128);
  Array<int> din(in), out(128);
  settle<<<1, 128>>>(din, out);
  int top = 0, odd = 0;
  for (const int x : in) {
    top = x > top ? x : top;
    odd += x % 2;
  }
  return close(out.host(), std::vector<int>(128, top * 1000 + odd));
}

// --- pipelined_copies: cp.async fills one stage while the other is used
__global__ void stages(int tiles, const float4* in, float4* out) {
  __shared__ float4 stage[2][64];
  const int t = threadIdx.x;
  __pipeline_memcpy_async(&stage[0][t], &in[t], sizeof(float4));
  __pipeline_commit();
  float4 sum = {0, 0, 0, 0};
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) __pipeline_memcpy_async(&stage[(i + 1) % 2][t], &in[(i + 1) * 64 + t], sizeof(float4));
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    const float4 v = stage[i % 2][63 - t];
    sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    __syncthreads();
  }
  out[t] = sum;
}
PROGRAM(pipelined_copies) {
  const int tiles = 6;
  const auto in = numbers(tiles * 256);
  Array<float> din(in), out(256);
  stages<<<1, 64>>>(tiles, reinterpret_cast<const float4*>(static_cast<float*>(din)), reinterpret_cast<float4*>(static_cast<float*>(out)));
  std::vector<float> expected(256);
  for (int i = 0; i < tiles * 256; ++i) expected[(63 - i % 256 / 4) * 4 + i % 4] += in[i];
  return close(out.host(), expected);
}

// --- bytes_side_by_side: neighbouring bytes in shared memory, written by different threads
__global__ void flags(const int* in, int* out) {
  __shared__ unsigned char flag[128];
  const int t = threadIdx.x;
  flag[(t * 37) % 128] = in[t] > 7;
  __syncthreads();
  out[t] = flag[t] + flag[127 - t];
}
PROGRAM(bytes_side_by_side) {
  const auto in = numbers<int>(128);
  Array<int> din(in), out(128);
  flags<<<1, 128>>>(din, out);
  std::vector<int> flag(128), expected(128);
  for (int t = 0; t < 128; ++t) flag[t * 37 % 128] = in[t] > 7;
  for (int t = 0; t < 128; ++t) expected[t] = flag[t] + flag[127 - t];
  return close(out.host(), expected);
}

// --- pairs_of_warps: a barrier for each pair of warps, numbered at run time
__global__ void exchange(const float* in, float* out) {
  __shared__ float s[4][64];
  const int pair = threadIdx.x / 64, t = threadIdx.x % 64;
  for (int round = 0; round < 3; ++round) {
    s[pair][t] = in[threadIdx.x] + round * pair;
    asm volatile("barrier.sync %0, 64;" ::"r"(pair + 1) : "memory");
    out[round * 256 + threadIdx.x] = s[pair][63 - t];
    asm volatile("barrier.sync %0, 64;" ::"r"(pair + 1) : "memory");
    if (pair == 3) break;
  }
}
PROGRAM(pairs_of_warps) {
  const auto in = numbers(256);
  Array<float> din(in), out(768);
  out.zero();
  exchange<<<1, 256>>>(din, out);
  std::vector<float> expected(768);
  for (int i = 0; i < 768; ++i) {
    const int round = i / 256, pair = i % 256 / 64;
    expected[i] = pair == 3 && round > 0 ? 0 : in[pair * 64 + 63 - i % 64] + static_cast<float>(round * pair);
  }
  return close(out.host(), expected);
}

// --- leader_decides: thread 0 leaves a decision that the whole block reads between two barriers
__global__ void search(int n, const int* in, int limit, int* result) {
  __shared__ int sum;
  __shared__ bool stop;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  for (int first = 0; first < n; first += blockDim.x) {
    if (first + threadIdx.x < n) atomicAdd(&sum, in[first + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) {
      stop = sum >= limit;
      if (stop) *result = first;
    }
    __syncthreads();
    if (stop) return;
  }
  if (threadIdx.x == 0) *result = -1;
}
PROGRAM(leader_decides) {
  const int n = 1000, limit = 3000;
  const auto in = numbers<int>(n);
  Array<int> din(in), result(1);
  search<<<1, 64>>>(n, din, limit, result);
  int sum = 0, expected = -1;
  for (int first = 0; first < n && expected < 0; first += 64) {
    for (int i = first; i < first + 64 && i < n; ++i) sum += in[i];
    if (sum >= limit) expected = first;
  }
  return result.host()[0] == expected;
}
