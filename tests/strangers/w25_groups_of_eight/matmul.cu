#include <cuda_runtime.h>

constexpr int T = 16;

__global__ void ker_matmul(float* c, const float* a, const float* b, int m, int n, int k, int across) {
  __shared__ float ta[T][T + 1], tb[T][T + 1];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.x / across * T + ty, column = blockIdx.x % across * T + tx;
  float sum = 0.0f;
  for (int s = 0; s < k; s += T) {
    const float x = row < m && s + tx < k ? a[(size_t)row * k + s + tx] : 0.0f;
    const float y = column < n && s + ty < k ? b[(size_t)(s + ty) * n + column] : 0.0f;
    ta[ty][tx] = x;
    tb[ty][tx] = y;
    __syncthreads();
    for (int i = 0; i < T; ++i) sum += ta[ty][i] * tb[i][tx];
    __syncthreads();
  }
  if (row < m && column < n) c[(size_t)row * n + column] = sum;
}

// Whole tiles of 64 x 64, without guards; groups of eight rows of tiles share the columns of B in the cache.
__global__ void ker_whole(float* c, const float* a, const float* b, int m, int n, int k) {
  __shared__ float ta[16][64], tb[16][64];
  const int t = threadIdx.x, tx = t % 16, ty = t / 16;
  const int down = m >> 6, across = n >> 6;
  const int group = blockIdx.x / (8 * across), in = blockIdx.x - group * 8 * across;
  const int high = (down >> 3) > group ? 8 : down & 7;
  const int r0 = (group * 8 + (down < 8 ? in % high : in & (high - 1))) << 6, c0 = (in / high) << 6;
  float sum[4][4] = {};
  for (int s = 0; s < k; s += 16) {
    for (int e = t; e < 1024; e += 256) {
      ta[e & 15][e >> 4] = a[(size_t)(r0 + (e >> 4)) * k + s + (e & 15)];
      tb[e >> 6][e & 63] = b[(size_t)(s + (e >> 6)) * n + c0 + (e & 63)];
    }
    __syncthreads();
    for (int i = 0; i < 16; ++i)
      for (int p = 0; p < 4; ++p)
        for (int q = 0; q < 4; ++q) sum[p][q] += ta[i][ty * 4 + p] * tb[i][tx * 4 + q];
    __syncthreads();
  }
  for (int p = 0; p < 4; ++p)
    for (int q = 0; q < 4; ++q) c[(size_t)(r0 + ty * 4 + p) * n + c0 + tx * 4 + q] = sum[p][q];
}

extern "C" void launch_matmul(float* c, const float* a, const float* b, int m, int n, int k, cudaStream_t stream) {
  if ((((m | n) & 63) | (k & 15)) == 0) {
    ker_whole<<<(m >> 6) * (n >> 6), 256, 0, stream>>>(c, a, b, m, n, k);
    return;
  }
  const int across = (n + T - 1) / T, down = (m + T - 1) / T;
  ker_matmul<<<across * down, dim3(T, T), 0, stream>>>(c, a, b, m, n, k, across);
}
