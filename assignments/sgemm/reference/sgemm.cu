// Tiles of A and B in shared memory; each thread has 8 x 8 elements of C in registers, 16 apart in both directions.
#include "sgemm.h"

constexpr int THREADS = 16;             // of a block, in each direction
constexpr int EACH = 8;                 // elements of a thread, in each direction
constexpr int TILE = THREADS * EACH;    // elements of a block, in each direction
constexpr int DEPTH = 8;                // of A's columns and B's rows at a time

__global__ void multiply(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float as[DEPTH][TILE + 1], bs[DEPTH][TILE];
  int thread = threadIdx.y * THREADS + threadIdx.x;
  int top = blockIdx.y * TILE, left = blockIdx.x * TILE;
  float sums[EACH][EACH] = {};
  for (int first = 0; first < k; first += DEPTH) {
    for (int at = thread; at < TILE * DEPTH; at += THREADS * THREADS) {
      int row = at / DEPTH, depth = at % DEPTH;
      as[depth][row] = top + row < m && first + depth < k ? a[size_t(top + row) * k + first + depth] : 0;
    }
    for (int at = thread; at < TILE * DEPTH; at += THREADS * THREADS) {
      int depth = at / TILE, column = at % TILE;
      bs[depth][column] = first + depth < k && left + column < n ? b[size_t(first + depth) * n + left + column] : 0;
    }
    __syncthreads();
    for (int depth = 0; depth < DEPTH; ++depth) {
      float rows[EACH], columns[EACH];
      for (int i = 0; i < EACH; ++i) {
        rows[i] = as[depth][threadIdx.y + i * THREADS];
        columns[i] = bs[depth][threadIdx.x + i * THREADS];
      }
      for (int i = 0; i < EACH; ++i)
        for (int j = 0; j < EACH; ++j) sums[i][j] += rows[i] * columns[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < EACH; ++i) {
    int row = top + threadIdx.y + i * THREADS;
    for (int j = 0; j < EACH; ++j) {
      int column = left + threadIdx.x + j * THREADS;
      if (row < m && column < n) c[size_t(row) * n + column] = sums[i][j];
    }
  }
}

void sgemm(const float* a, const float* b, float* c, int m, int n, int k) {
  dim3 blocks((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
  multiply<<<blocks, dim3(THREADS, THREADS)>>>(a, b, c, m, n, k);
}
