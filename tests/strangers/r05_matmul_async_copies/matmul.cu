// Matrix multiplication: the next tiles are on their way (cp.async) while these are multiplied.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

constexpr int TILE = 32, EACH = 4;

__global__ void __launch_bounds__(256) ker_matmul(float* c, const float* a, const float* b, int m, int n, int k, long long across) {
  __shared__ float of_a[2][TILE][TILE + 1], of_b[2][TILE][TILE];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const long long row0 = blockIdx.x / across * TILE, column0 = blockIdx.x % across * TILE;
  const auto fetch = [&](int buffer, int s) {
    for (int i = 0; i < EACH; ++i) {
      const int y = ty + 8 * i;
      const bool in_a = row0 + y < m && s + tx < k, in_b = s + y < k && column0 + tx < n;
      __pipeline_memcpy_async(&of_a[buffer][y][tx], in_a ? a + (row0 + y) * k + s + tx : a, 4, in_a ? 0 : 4);
      __pipeline_memcpy_async(&of_b[buffer][y][tx], in_b ? b + static_cast<long long>(s + y) * n + column0 + tx : b, 4, in_b ? 0 : 4);
    }
    __pipeline_commit();
  };
  float sum[EACH] = {};
  fetch(0, 0);
  for (int s = 0, buffer = 0; s < k; s += TILE, buffer ^= 1) {
    if (s + TILE < k) {
      fetch(buffer ^ 1, s + TILE);
      __pipeline_wait_prior(1);
    } else {
      __pipeline_wait_prior(0);
    }
    __syncthreads();
    for (int j = 0; j < TILE; ++j)
      for (int i = 0; i < EACH; ++i) sum[i] += of_a[buffer][ty + 8 * i][j] * of_b[buffer][j][tx];
    __syncthreads();
  }
  for (int i = 0; i < EACH; ++i) {
    const long long row = row0 + ty + 8 * i, column = column0 + tx;
    if (row < m && column < n) c[row * n + column] = sum[i];
  }
}

extern "C" void launch_matmul(float* c, const float* a, const float* b, int m, int n, int k, cudaStream_t stream) {
  const long long across = (n + TILE - 1) / TILE, tiles = across * ((m + TILE - 1) / TILE);
  ker_matmul<<<static_cast<unsigned>(tiles), dim3(32, 8), 0, stream>>>(c, a, b, m, n, k, across);
}
