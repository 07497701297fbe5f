// Matrix multiplication in float32: C = A B.
//
// Idea: each number that is loaded must be used often. A block computes 64 x 64 elements of C and walks along k
// in steps of 16: it loads 64 x 16 of A and 16 x 64 of B into shared memory, and there each number serves 64
// products. A thread keeps 8 x 4 elements of C in registers, so 12 numbers from shared memory give 32 products.
// While it computes one step, the loads of the next are on their way to registers.
//
// Operations: 2 m n k.
//
// Launch: a block of 128 threads per tile of C, all in one dimension of the grid.
#include <cuda_runtime.h>

constexpr int TILE = 64, STEP = 16, THREADS = 128, DOWN = 8, ACROSS = 4;
constexpr int EACH = TILE * STEP / THREADS;  // numbers of A, and of B, that a thread loads in a step

__global__ void __launch_bounds__(THREADS) ker_matmul(float* c, const float* a, const float* b, int m, int n, int k) {
  // A's part is transposed, padded against bank conflicts. Aligned, so that four numbers come with one load.
  __shared__ alignas(16) float of_a[STEP][TILE + 4], of_b[STEP][TILE];
  const int across = (n + TILE - 1) / TILE;
  const int top = blockIdx.x / across * TILE, left = blockIdx.x % across * TILE;
  const int row = threadIdx.x / (TILE / ACROSS) * DOWN, column = threadIdx.x % (TILE / ACROSS) * ACROSS;
  float next_a[EACH], next_b[EACH];
  const auto fetch = [&](int begin) {
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
      const int i = e * THREADS + threadIdx.x;
      const int r = top + i / STEP, s = begin + i % STEP;
      next_a[e] = r < m && s < k ? a[(size_t)r * k + s] : 0.0f;
      const int t = begin + i / TILE, q = left + i % TILE;
      next_b[e] = t < k && q < n ? b[(size_t)t * n + q] : 0.0f;
    }
  };

  float sum[DOWN][ACROSS] = {};
  fetch(0);
  for (int begin = 0; begin < k; begin += STEP) {
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
      const int i = e * THREADS + threadIdx.x;
      of_a[i % STEP][i / STEP] = next_a[e];
      of_b[i / TILE][i % TILE] = next_b[e];
    }
    __syncthreads();
    if (begin + STEP < k) fetch(begin + STEP);
#pragma unroll
    for (int s = 0; s < STEP; ++s) {
      float down[DOWN], right[ACROSS];
#pragma unroll
      for (int i = 0; i < DOWN; ++i) down[i] = of_a[s][row + i];
#pragma unroll
      for (int j = 0; j < ACROSS; ++j) right[j] = of_b[s][column + j];
#pragma unroll
      for (int i = 0; i < DOWN; ++i)
#pragma unroll
        for (int j = 0; j < ACROSS; ++j) sum[i][j] = fmaf(down[i], right[j], sum[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < DOWN; ++i)
    for (int j = 0; j < ACROSS; ++j)
      if (top + row + i < m && left + column + j < n) c[(size_t)(top + row + i) * n + left + column + j] = sum[i][j];
}

extern "C" void launch_matmul(float* c, const float* a, const float* b, int m, int n, int k, cudaStream_t stream) {
  const int tiles = (m + TILE - 1) / TILE * ((n + TILE - 1) / TILE);
  ker_matmul<<<tiles, THREADS, 0, stream>>>(c, a, b, m, n, k);
}
