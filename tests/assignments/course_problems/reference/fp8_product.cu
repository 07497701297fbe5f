#include <cuda_fp8.h>
#include <cuda_runtime.h>

__global__ void ker_fp8_product(__nv_fp8_e5m2* c, const __nv_fp8_e4m3* a, const __nv_fp8_e4m3* b, float scale, int m,
                                int n, int k) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += float(a[(size_t)row * k + i]) * float(b[(size_t)i * n + column]);
  c[(size_t)row * n + column] = __nv_fp8_e5m2(sum * scale);
}

extern "C" void launch_fp8_product(__nv_fp8_e5m2* c, const __nv_fp8_e4m3* a, const __nv_fp8_e4m3* b, float scale,
                                   int m, int n, int k, cudaStream_t stream) {
  const dim3 block(32, 4), grid((n + 31) / 32, (m + 3) / 4);
  ker_fp8_product<<<grid, block, 0, stream>>>(c, a, b, scale, m, n, k);
}
