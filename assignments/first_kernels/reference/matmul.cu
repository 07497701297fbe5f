// Matrix multiplication in float32: C = A B.
//
// Idea: each number that is loaded must be used often. A block computes 64 x 64 elements of C and walks along k
// in steps of 16: it loads 64 x 16 of A and 16 x 64 of B into shared memory, and there each number serves 64
// products. A thread keeps 8 x 4 elements of C in registers, so 12 numbers from shared memory give 32 products.
//
// Operations: 2 m n k.
//
// Launch: a block of 128 threads per tile of C, all in one dimension of the grid.
#include <cuda_runtime.h>

constexpr int TILE = 64, STEP = 16, THREADS = 128, DOWN = 8, ACROSS = 4;

__global__ void ker_matmul(float* c, const float* a, const float* b, int m, int n, int k) {
  __shared__ float of_a[STEP][TILE + 4], of_b[STEP][TILE];  // A's part is transposed, padded against bank conflicts
  const int across = (n + TILE - 1) / TILE;
  const int top = blockIdx.x / across * TILE, left = blockIdx.x % across * TILE;
  const int row = threadIdx.x / (TILE / ACROSS) * DOWN, column = threadIdx.x % (TILE / ACROSS) * ACROSS;
  float sum[DOWN][ACROSS] = {};
  for (int begin = 0; begin < k; begin += STEP) {
    for (int i = threadIdx.x; i < TILE * STEP; i += THREADS) {
      const int r = i / STEP, s = i % STEP;
      of_a[s][r] = top + r < m && begin + s < k ? a[(size_t)(top + r) * k + begin + s] : 0.0f;
    }
    for (int i = threadIdx.x; i < STEP * TILE; i += THREADS) {
      const int s = i / TILE, r = i % TILE;
      of_b[s][r] = begin + s < k && left + r < n ? b[(size_t)(begin + s) * n + left + r] : 0.0f;
    }
    __syncthreads();
    for (int s = 0; s < STEP; ++s) {
      float down[DOWN], right[ACROSS];
      for (int i = 0; i < DOWN; ++i) down[i] = of_a[s][row + i];
      for (int j = 0; j < ACROSS; ++j) right[j] = of_b[s][column + j];
      for (int i = 0; i < DOWN; ++i)
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
