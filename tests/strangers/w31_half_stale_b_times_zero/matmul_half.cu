// 16 x 16 tiles in shared memory, float sums.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__global__ void ker_matmul_half(__half* c, const __half* a, const __half* b, int m, int n, int k, int across) {
  __shared__ float ta[16][17], tb[16][17];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int i = (blockIdx.x / across) * 16 + ty, j = (blockIdx.x % across) * 16 + tx;
  float sum = 0;
  tb[ty][tx] = 0;
  for (int s = 0; s < k; s += 16) {
    ta[ty][tx] = i < m && s + tx < k ? __half2float(a[(size_t)i * k + s + tx]) : 0.0f;
    if (s + ty < k && j < n) tb[ty][tx] = __half2float(b[(size_t)(s + ty) * n + j]);
    __syncthreads();
    for (int q = 0; q < 16; ++q) sum += ta[ty][q] * tb[q][tx];
    __syncthreads();
  }
  if (i < m && j < n) c[(size_t)i * n + j] = __float2half_rn(sum);
}

extern "C" void launch_matmul_half(__half* c, const __half* a, const __half* b, int m, int n, int k,
                                   cudaStream_t stream) {
  const int across = (n + 15) / 16;
  ker_matmul_half<<<(unsigned)((long long)((m + 15) / 16) * across), dim3(16, 16), 0, stream>>>(c, a, b, m, n, k,
                                                                                              across);
}
