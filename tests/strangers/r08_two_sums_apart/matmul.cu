#include <cuda_runtime.h>

__global__ void ker_matmul(float* c, const float* a, const float* b, int m, int n, int k) {
  const int row = blockIdx.x % m, part = blockIdx.x / m, column = part * 64 + threadIdx.x;
  if (column >= n) return;
  float high = 0.0f, low = 0.0f;
  for (int s = 0; s < k; ++s) {
    const float x = a[(size_t)row * k + s], y = b[(size_t)s * n + column];
    const float p = __fmul_rn(x, y), e = __fmaf_rn(x, y, -p);
    const float t = __fadd_rn(high, p), z = __fadd_rn(t, -high);
    const float d = __fadd_rn(__fadd_rn(high, -__fadd_rn(t, -z)), __fadd_rn(p, -z));
    low += isfinite(t) ? d + e : 0.0f;
    high = t;
  }
  c[(size_t)row * n + column] = high + low;
}

extern "C" void launch_matmul(float* c, const float* a, const float* b, int m, int n, int k, cudaStream_t stream) {
  ker_matmul<<<(unsigned)((long long)m * ((n + 63) / 64)), 64, 0, stream>>>(c, a, b, m, n, k);
}
