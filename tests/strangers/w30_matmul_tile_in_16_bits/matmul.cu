// 32 x 32 tiles; a block knows its tile as a packed word.
#include <cuda_runtime.h>

__global__ void ker_matmul(float* c, const float* a, const float* b, int m, int n, int k, int across) {
  __shared__ float ta[32][33], tb[32][33];
  __shared__ ushort2 tile;
  if (threadIdx.x == 0 && threadIdx.y == 0)
    tile = make_ushort2((unsigned short)(blockIdx.x / across), (unsigned short)(blockIdx.x % across));
  __syncthreads();
  const int tx = threadIdx.x, ty = threadIdx.y, i0 = tile.x * 32, j0 = tile.y * 32;
  float sum[4] = {};
  for (int s = 0; s < k; s += 32) {
    for (int q = ty; q < 32; q += 8) {
      ta[q][tx] = i0 + q < m && s + tx < k ? a[(size_t)(i0 + q) * k + s + tx] : 0.0f;
      tb[q][tx] = s + q < k && j0 + tx < n ? b[(size_t)(s + q) * n + j0 + tx] : 0.0f;
    }
    __syncthreads();
    for (int q = 0; q < 32; ++q)
      for (int h = 0; h < 4; ++h) sum[h] += ta[ty + 8 * h][q] * tb[q][tx];
    __syncthreads();
  }
  for (int h = 0; h < 4; ++h) {
    const int i = i0 + ty + 8 * h;
    if (i < m && j0 + tx < n) c[(size_t)i * n + j0 + tx] = sum[h];
  }
}

extern "C" void launch_matmul(float* c, const float* a, const float* b, int m, int n, int k, cudaStream_t stream) {
  const int across = (n + 31) / 32;
  const long long tiles = (long long)((m + 31) / 32) * across;
  ker_matmul<<<(unsigned)tiles, dim3(32, 8), 0, stream>>>(c, a, b, m, n, k, across);
}
