// Reads of memory that nobody has written.
#include "../corpus.h"

// --- sum_without_memset: block sums are added to memory that was never zeroed
__global__ void add_up(int n, const float* in, float* sum) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = i < n ? in[i] : 0;
  for (int step = 16; step > 0; step /= 2) s += __shfl_down_sync(~0u, s, step);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, s);  // BUG initcheck uninit_global
}
PROGRAM(sum_without_memset) {
  const int n = 1000;
  Array<float> in(numbers(n)), sum(1);
  add_up<<<4, 256>>>(n, in, sum);
  finish();
  return true;
}

// --- copy_of_elements_not_bytes: cudaMemcpy is given the number of elements
__global__ void negate(int n, const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = -in[i];  // BUG initcheck uninit_global
}
PROGRAM(copy_of_elements_not_bytes) {
  const int n = 1024;
  const auto host = numbers(n);
  Array<float> in(n), out(n);
  CUDA(cudaMemcpy(in, host.data(), n, cudaMemcpyHostToDevice));
  negate<<<4, 256>>>(n, in, out);
  finish();
  return true;
}

// --- gradient_accumulates: += into a gradient that nobody has set
__global__ void column_sums(int rows, int columns, const float* in, float* sums) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= columns) return;
  for (int r = 0; r < rows; ++r) sums[c] += in[r * columns + c];  // BUG initcheck uninit_global
}
PROGRAM(gradient_accumulates) {
  const int rows = 16, columns = 100;
  Array<float> in(numbers(rows * columns)), sums(columns);
  column_sums<<<1, 128>>>(rows, columns, in, sums);
  finish();
  return true;
}

// --- tile_half_filled: the tile's tail is left as it was instead of set to zero
__global__ void tile_sums(int n, const float* in, float* sums) {
  __shared__ float tile[256];
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) tile[threadIdx.x] = in[i];
  __syncthreads();
  for (int step = 128; step > 0; step /= 2) {
    if (threadIdx.x < step) tile[threadIdx.x] += tile[threadIdx.x + step];  // BUG initcheck uninit_shared
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = tile[0];
}
PROGRAM(tile_half_filled) {
  const int n = 1000;
  Array<float> in(numbers(n)), sums(4);
  tile_sums<<<4, 256>>>(n, in, sums);
  finish();
  return true;
}

// --- softmax_reads_all_warp_slots: 32 slots are reduced, but the block has only eight warps
__global__ void softmax(int columns, float* data) {
  __shared__ float slots[32];
  float* row = data + blockIdx.x * columns;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float top = -INFINITY;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) top = fmaxf(top, row[c]);
  for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
  if (lane == 0) slots[warp] = top;
  __syncthreads();
  top = slots[lane];  // BUG initcheck uninit_shared
  for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
  for (int c = threadIdx.x; c < columns; c += blockDim.x) row[c] = expf(row[c] - top);
}
PROGRAM(softmax_reads_all_warp_slots) {
  const int rows = 2, columns = 700;
  Array<float> data(numbers(rows * columns));
  softmax<<<rows, 256>>>(columns, data);
  finish();
  return true;
}

// --- shared_bins_not_zeroed: a histogram in shared memory that begins with what was there
__global__ void count_values(int n, const int* values, unsigned* bins) {
  __shared__ unsigned local[16];
  for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&local[values[i]], 1u);  // BUG initcheck uninit_shared
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
PROGRAM(shared_bins_not_zeroed) {
  const int n = 4096;
  Array<int> values(numbers<int>(n));
  Array<unsigned> bins(16);
  bins.zero();
  count_values<<<1, 256>>>(n, values, bins);
  finish();
  return true;
}

// --- stale_after_reallocation: the new buffer lies where the old one was, and its content seems right
__global__ void double_it(int n, const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * in[i];  // BUG initcheck uninit_global
}
PROGRAM(stale_after_reallocation) {
  const int n = 256;
  const auto host = numbers(n);
  { Array<float> first(host); }
  Array<float> second(n), out(n);
  double_it<<<1, 256>>>(n, second, out);
  finish();
  return true;
}

// --- third_component_forgotten: two of three components are set, the length needs all
__global__ void set_points(int n, float3* points) {
  const int i = threadIdx.x;
  if (i < n) {
    points[i].x = static_cast<float>(i);
    points[i].y = 1;
  }
}
__global__ void lengths(int n, const float3* points, float* out) {
  const int i = threadIdx.x;
  if (i >= n) return;
  const float3 p = points[i];  // BUG initcheck uninit_global
  out[i] = sqrtf(p.x * p.x + p.y * p.y + p.z * p.z);
}
PROGRAM(third_component_forgotten) {
  const int n = 64;
  Array<float> points(3 * n), out(n);
  float3* p = reinterpret_cast<float3*>(static_cast<float*>(points));
  set_points<<<1, 64>>>(n, p);
  lengths<<<1, 64>>>(n, p, out);
  finish();
  return true;
}
