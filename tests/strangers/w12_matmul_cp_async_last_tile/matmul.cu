#include <cuda_runtime.h>

#include <cuda_pipeline.h>
constexpr int T = 16, STAGES = 3;
__global__ void ker_matmul(float* c, const float* a, const float* b, int m, int n, int k, int across) {
  __shared__ float as[STAGES][T][T], bs[STAGES][T][T + 1];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.x / across * T + ty, column = blockIdx.x % across * T + tx;
  int tiles = (k + T - 1) / T;
  auto fetch = [&](int t) {
    int s = t % STAGES, ka = t * T + tx, kb = t * T + ty;
    __pipeline_memcpy_async(&as[s][ty][tx], row < m && ka < k ? a + (size_t)row * k + ka : a, 4, row < m && ka < k ? 0 : 4);
    __pipeline_memcpy_async(&bs[s][ty][tx], column < n && kb < k ? b + (size_t)kb * n + column : b, 4, column < n && kb < k ? 0 : 4);
    __pipeline_commit();
  };
  for (int t = 0; t < STAGES - 1 && t < tiles; ++t) fetch(t);
  float sum = 0.0f;
  for (int t = 0; t < tiles; ++t) {
    __pipeline_wait_prior(STAGES - 2);
    __syncthreads();
    if (t + STAGES - 1 < tiles) fetch(t + STAGES - 1);
    for (int s = 0; s < T; ++s) sum += as[t % STAGES][ty][s] * bs[t % STAGES][s][tx];
  }
  if (row < m && column < n) c[(size_t)row * n + column] = sum;
}
extern "C" void launch_matmul(float* c, const float* a, const float* b, int m, int n, int k, cudaStream_t stream) {
  int across = (n + T - 1) / T, down = (m + T - 1) / T;
  ker_matmul<<<across * down, dim3(T, T), 0, stream>>>(c, a, b, m, n, k, across);
}
