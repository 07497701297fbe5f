// Tiles of 16 x 16 in shared memory; each thread has one element of C.
#include "sgemm.h"

constexpr int TILE = 16;

__global__ void multiply(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE];
  int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
  float sum = 0;
  for (int first = 0; first < k; first += TILE) {
    int depth = first + threadIdx.x;
    as[threadIdx.y][threadIdx.x] = row < m && depth < k ? a[size_t(row) * k + depth] : 0;
    depth = first + threadIdx.y;
    bs[threadIdx.y][threadIdx.x] = depth < k && column < n ? b[size_t(depth) * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < TILE; ++i) sum = fmaf(as[threadIdx.y][i], bs[i][threadIdx.x], sum);
    __syncthreads();
  }
  if (row < m && column < n) c[size_t(row) * n + column] = sum;
}

void sgemm(const float* a, const float* b, float* c, int m, int n, int k) {
  multiply<<<dim3((n + TILE - 1) / TILE, (m + TILE - 1) / TILE), dim3(TILE, TILE)>>>(a, b, c, m, n, k);
}
