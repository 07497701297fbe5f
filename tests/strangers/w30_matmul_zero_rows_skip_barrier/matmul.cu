// Matrix multiplication by tiles of 16 x 16; what is zero in A is skipped, as many matrices are sparse.
#include <cuda_runtime.h>

constexpr int TILE = 16;
constexpr unsigned ALL = ~0u;

__global__ void ker_matmul(float* c, const float* a, const float* b, int m, int n, int k) {
  __shared__ float of_a[TILE][TILE], of_b[TILE][TILE + 1];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const long long row = static_cast<long long>(blockIdx.x) * TILE + ty;
  const long long from = row < m ? row : m - 1;  // rows behind the end repeat the last one
  for (long long column0 = static_cast<long long>(blockIdx.y) * TILE; column0 < n; column0 += static_cast<long long>(gridDim.y) * TILE) {
    const long long column = column0 + tx;
    float sum = 0;
    for (int s = 0; s < k; s += TILE) {
      const float x = s + tx < k ? a[from * k + s + tx] : 0.0f;
      of_a[ty][tx] = x;
      of_b[ty][tx] = s + ty < k && column < n ? b[(s + ty) * static_cast<long long>(n) + column] : 0.0f;
      __syncthreads();
      if (!__any_sync(ALL, x != 0)) continue;  // rows of zeros need no products
      for (int i = 0; i < TILE; ++i) sum += of_a[ty][i] * of_b[i][tx];
      __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
    __syncthreads();
  }
}

extern "C" void launch_matmul(float* c, const float* a, const float* b, int m, int n, int k, cudaStream_t stream) {
  const int across = (n + TILE - 1) / TILE;
  const dim3 grid((m + TILE - 1) / TILE, across < 65535 ? across : 65535);
  ker_matmul<<<grid, dim3(TILE, TILE), 0, stream>>>(c, a, b, m, n, k);
}
