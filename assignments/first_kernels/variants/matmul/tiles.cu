// Tiles of 16 x 16 in shared memory, an element of C per thread.
#include <cuda_runtime.h>

constexpr int TILE = 16;

__global__ void ker(float* c, const float* a, const float* b, int m, int n, int k) {
  __shared__ float of_a[TILE][TILE], of_b[TILE][TILE];
  const int across = (n + TILE - 1) / TILE;
  const int row = blockIdx.x / across * TILE + threadIdx.y, column = blockIdx.x % across * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int begin = 0; begin < k; begin += TILE) {
    const int s = begin + threadIdx.x, t = begin + threadIdx.y;
    of_a[threadIdx.y][threadIdx.x] = row < m && s < k ? a[(size_t)row * k + s] : 0.0f;
    of_b[threadIdx.y][threadIdx.x] = column < n && t < k ? b[(size_t)t * n + column] : 0.0f;
    __syncthreads();
    for (int i = 0; i < TILE; ++i) sum += of_a[threadIdx.y][i] * of_b[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[(size_t)row * n + column] = sum;
}

extern "C" void launch_matmul(float* c, const float* a, const float* b, int m, int n, int k, cudaStream_t stream) {
  const int tiles = (m + TILE - 1) / TILE * ((n + TILE - 1) / TILE);
  ker<<<tiles, dim3(TILE, TILE), 0, stream>>>(c, a, b, m, n, k);
}
