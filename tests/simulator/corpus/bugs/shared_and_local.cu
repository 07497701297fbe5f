// Kernels that leave their block's shared memory or their thread's own arrays.
#include "../corpus.h"

// --- halo_too_small: a tile with room for one halo cell, and a stencil that is two wide
__global__ void wide_stencil(int n, const float* in, float* out) {
  __shared__ float tile[128 + 1];
  const int i = blockIdx.x * 128 + threadIdx.x, t = threadIdx.x + 2;
  tile[t] = i < n ? in[i] : 0;  // BUG memcheck shared_oob
  if (threadIdx.x < 2) tile[threadIdx.x] = 0;
  __syncthreads();
  if (i < n) out[i] = tile[t - 2] + tile[t - 1] + tile[t];  // BUG memcheck shared_oob
}
PROGRAM(halo_too_small) {
  const int n = 1024;
  Array<float> in(numbers(n)), out(n);
  wide_stencil<<<8, 128>>>(n, in, out);
  finish();
  return true;
}

// --- dynamic_shared_in_warps: room for one float per warp is asked for, one per thread is used
__global__ void block_sum(const float* in, float* out) {
  extern __shared__ float partial[];
  partial[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];  // BUG memcheck shared_oob
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];  // BUG memcheck shared_oob
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}
PROGRAM(dynamic_shared_in_warps) {
  Array<float> in(numbers(1024)), out(4);
  block_sum<<<4, 256, 256 / 32 * sizeof(float)>>>(in, out);
  finish();
  return true;
}

// --- scan_before_the_start: a scan without the guard for the first threads
__global__ void scan(const int* in, int* out) {
  __shared__ int sums[2][256];
  const int t = threadIdx.x;
  int from = 0;
  sums[0][t] = in[t];
  __syncthreads();
  for (int step = 1; step < 256; step *= 2, from ^= 1) {
    const int left = sums[from][t - step];  // BUG memcheck shared_oob
    sums[from ^ 1][t] = sums[from][t] + (t >= step ? left : 0);
    __syncthreads();
  }
  out[t] = sums[from][t];
}
PROGRAM(scan_before_the_start) {
  Array<int> in(numbers<int>(256)), out(256);
  scan<<<1, 256>>>(in, out);
  finish();
  return true;
}

// --- small_stack: a depth-first walk with a stack that is too small for its tree
__global__ void walk(const int* left, const int* right, int* visited) {
  int stack[8];
  int top = 0, count = 0;
  stack[top++] = 0;
  while (top > 0) {
    const int node = stack[--top];  // ALSO memcheck local_oob
    ++count;
    if (right[node] >= 0) stack[top++] = right[node];  // BUG memcheck local_oob
    if (left[node] >= 0) stack[top++] = left[node];  // BUG memcheck local_oob
  }
  visited[threadIdx.x] = count;
}
PROGRAM(small_stack) {
  const int n = 4001;  // each left child is inner and each right one a leaf: the stack grows with every level
  std::vector<int> left(n, -1), right(n, -1);
  for (int i = 0; i + 2 < n; i += 2) {
    left[i] = i + 2;
    right[i] = i + 1;
  }
  Array<int> dl(left), dr(right), visited(32);
  walk<<<1, 32>>>(dl, dr, visited);
  finish();
  return true;
}

// --- top_k_runs_over: an insertion sort of the best eight that begins behind its end
__global__ void best(int n, int k, const float* in, float* out) {
  float top[8];
  for (int j = 0; j < 8; ++j) top[j] = -1;
  for (int i = 0; i < n; ++i) {
    const float x = in[i * 32 + threadIdx.x];
    int j = k;
    while (j > 0 && top[j - 1] < x) {  // BUG memcheck local_oob
      top[j] = top[j - 1];  // BUG memcheck local_oob
      --j;
    }
    top[j] = x;  // BUG memcheck local_oob
  }
  for (int j = 0; j < 8; ++j) out[j * 32 + threadIdx.x] = top[j];
}
PROGRAM(top_k_runs_over) {
  const int n = 32;
  Array<float> in(numbers(32 * n)), out(32 * 8);
  best<<<1, 32>>>(n, 2000, in, out);
  finish();
  return true;
}
