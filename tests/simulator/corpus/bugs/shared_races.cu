// Threads of different warps that meet in shared memory without a barrier between them.
#include "../corpus.h"

// --- tree_without_barrier: a tree reduction whose loop has no barrier
__global__ void tree_sum(const float* in, float* out) {
  __shared__ float s[256];
  s[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  for (int step = 128; step > 0; step /= 2) {
    if (threadIdx.x < step) s[threadIdx.x] += s[threadIdx.x + step];  // BUG racecheck race_shared // ALSO racecheck race_warp
  }
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}
PROGRAM(tree_without_barrier) {
  const auto in = numbers(1024);
  Array<float> din(in), out(4);
  tree_sum<<<4, 256>>>(din, out);
  finish();
  return true;
}

// --- maximum_and_sum_share: the sum's slots are the maximum's, and some warps have not read it yet
__device__ float block_reduce(float x, float* slots, bool maximum) {
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(~0u, x, step);
    x = maximum ? fmaxf(x, other) : x + other;
  } __syncwarp();
  if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = x;  // BUG racecheck race_shared
  __syncthreads();
  x = slots[0];  // BUG racecheck race_shared
  for (int w = 1; w < blockDim.x / 32; ++w) x = maximum ? fmaxf(x, slots[w]) : x + slots[w];  // BUG racecheck race_shared
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
PROGRAM(maximum_and_sum_share) {
  Array<float> data(numbers(4 * 500));
  softmax<<<4, 128>>>(500, data);
  finish();
  return true;
}

// --- scan_in_one_buffer: a Hillis-Steele scan in place, with one barrier a step instead of two
__global__ void scan(const int* in, int* out) {
  __shared__ int s[256];
  const int t = threadIdx.x;
  s[t] = in[t];
  for (int step = 1; step < 256; step *= 2) {
    __syncthreads();
    if (t >= step) s[t] += s[t - step];  // BUG racecheck race_shared // ALSO racecheck race_warp
  }
  out[t] = s[t];
}
PROGRAM(scan_in_one_buffer) {
  Array<int> in(numbers<int>(256)), out(256);
  scan<<<1, 256>>>(in, out);
  finish();
  return true;
}

// --- matmul_without_second_barrier: the next tile is loaded while slow warps still use the last
__global__ void matmul(int n, const float* a, const float* b, float* c) {
  __shared__ float ta[16][16], tb[16][16];
  const int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    ta[y][x] = a[row * n + k + x];  // BUG racecheck race_shared // ALSO racecheck race_warp
    tb[y][x] = b[(k + y) * n + column];  // BUG racecheck race_shared // ALSO racecheck race_warp
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += ta[y][i] * tb[i][x];  // BUG racecheck race_shared
  }
  c[row * n + column] = sum;
}
PROGRAM(matmul_without_second_barrier) {
  const int n = 48;
  Array<float> a(numbers(n * n)), b(numbers(n * n)), c(n * n);
  matmul<<<dim3(3, 3), dim3(16, 16)>>>(n, a, b, c);
  finish();
  return true;
}

// --- transpose_without_barrier: columns of the tile are read before other warps have written them
__global__ void transpose(int n, const float* in, float* out) {
  __shared__ float tile[32][33];
  const int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[(blockIdx.y * 32 + y) * n + blockIdx.x * 32 + x];  // BUG racecheck race_shared
  out[(blockIdx.x * 32 + y) * n + blockIdx.y * 32 + x] = tile[x][y];  // BUG racecheck race_shared // ALSO initcheck uninit_shared
}
PROGRAM(transpose_without_barrier) {
  const int n = 64;
  Array<float> in(numbers(n * n)), out(n * n);
  transpose<<<dim3(2, 2), dim3(32, 32)>>>(n, in, out);
  finish();
  return true;
}

// --- histogram_without_atomics: bins in shared memory are counted with ++
__global__ void histogram(int n, const int* values, unsigned* bins) {
  __shared__ unsigned local[16];
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) local[values[i]]++;  // BUG racecheck race_shared // ALSO racecheck race_warp
  __syncthreads();
  if (threadIdx.x < 16) bins[threadIdx.x] = local[threadIdx.x];
}
PROGRAM(histogram_without_atomics) {
  const int n = 4096;
  Array<int> values(numbers<int>(n));
  Array<unsigned> bins(16);
  histogram<<<1, 256>>>(n, values, bins);
  finish();
  return true;
}

// --- relaxation_in_place: a Jacobi step that overwrites what its neighbours still need
__global__ void relax(int steps, float* data) {
  __shared__ float s[258];
  const int t = threadIdx.x + 1;
  s[t] = data[t];
  if (t == 1) s[0] = data[0];
  if (t == 256) s[257] = data[257];
  for (int step = 0; step < steps; ++step) {
    __syncthreads();
    s[t] = 0.5f * (s[t - 1] + s[t + 1]);  // BUG racecheck race_shared // ALSO racecheck race_warp
  }
  data[t] = s[t];
}
PROGRAM(relaxation_in_place) {
  Array<float> data(numbers(258));
  relax<<<1, 256>>>(3, data);
  finish();
  return true;
}

// --- mean_before_it_is_there: one thread writes the mean for all; in order, the others happen to read it later
__global__ void centre(int columns, float* data) {
  __shared__ float mean;
  float* row = data + blockIdx.x * columns;
  if (threadIdx.x == 0) {
    float sum = 0;
    for (int c = 0; c < columns; ++c) sum += row[c];
    mean = sum / columns;  // BUG racecheck race_shared // ALSO racecheck race_warp
  }
  __syncwarp();
  const float m = mean;  // BUG racecheck race_shared // ALSO initcheck uninit_shared
  __syncthreads();
  for (int c = threadIdx.x; c < columns; c += blockDim.x) row[c] -= m;
}
PROGRAM(mean_before_it_is_there) {
  Array<float> data(numbers(4 * 64));
  centre<<<4, 64>>>(64, data);
  finish();
  return true;
}

// --- counter_reset_without_barrier: one thread zeroes the counter while others already count
__global__ void count_large(const int* in, int* out) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;  // BUG racecheck race_shared // ALSO racecheck race_warp
  if (in[blockIdx.x * 128 + threadIdx.x] > 7) atomicAdd(&count, 1);  // BUG racecheck race_shared // ALSO racecheck race_warp // ALSO initcheck uninit_shared
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = count;
}
PROGRAM(counter_reset_without_barrier) {
  Array<int> in(numbers<int>(512)), out(4);
  count_large<<<4, 128>>>(in, out);
  finish();
  return true;
}

// --- queue_read_while_growing: the counter is read right after the atomics of other warps
__global__ void collect(const int* in, int* out) {
  __shared__ int count, list[128];
  if (threadIdx.x == 0) count = 0;
  list[threadIdx.x] = -1;
  __syncthreads();
  if (in[threadIdx.x] > 7) list[atomicAdd(&count, 1)] = in[threadIdx.x];  // BUG racecheck race_shared
  if (threadIdx.x < 32) {
    for (int i = threadIdx.x; i < count; i += 32) out[i] = list[i];  // BUG racecheck race_shared // ALSO racecheck race_warp
  }
}
PROGRAM(queue_read_while_growing) {
  Array<int> in(numbers<int>(128)), out(128);
  out.zero();
  collect<<<1, 128>>>(in, out);
  finish();
  return true;
}

// --- pivot_for_the_next_round: the leader writes the next pivot while others still read the last
__global__ void eliminate(int n, float* a) {
  __shared__ float pivot;
  const int row = threadIdx.x;
  for (int k = 0; k < n; ++k) {
    if (row == k) pivot = a[k * n + k] + 1;  // BUG racecheck race_shared // ALSO racecheck race_warp
    __syncthreads();
    a[row * n + k] = a[row * n + k] / pivot;  // BUG racecheck race_shared
  }
}
PROGRAM(pivot_for_the_next_round) {
  const int n = 64;
  Array<float> a(numbers(n * n));
  eliminate<<<1, n>>>(n, a);
  finish();
  return true;
}

// --- vectors_over_scalars: one half of the block stores float4, the other half reads floats
__global__ void widen(const float4* in, float* out) {
  __shared__ float4 tile[32];
  if (threadIdx.x < 32) {
    tile[threadIdx.x] = in[threadIdx.x];  // BUG racecheck race_shared
  } else {
    out[threadIdx.x - 32] = reinterpret_cast<float*>(tile)[127 - threadIdx.x];  // BUG racecheck race_shared // ALSO initcheck uninit_shared
  }
}
PROGRAM(vectors_over_scalars) {
  Array<float> in(numbers(128)), out(96);
  widen<<<1, 128>>>(reinterpret_cast<const float4*>(static_cast<float*>(in)), out);
  finish();
  return true;
}
