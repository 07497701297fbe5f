#include <cuda_runtime.h>

__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(unsigned long long* b, unsigned count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at(b)), "r"(count) : "memory");
}
__device__ void arrive(unsigned long long* b) {
  asm volatile("{ .reg .b64 t; mbarrier.arrive.shared.b64 t, [%0]; }" ::"r"(at(b)) : "memory");
}
__device__ void wait(unsigned long long* b, unsigned parity) {
  unsigned ok;
  do
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(ok)
                 : "r"(at(b)), "r"(parity)
                 : "memory");
  while (!ok);
}

__global__ void __launch_bounds__(288)
ker_matmul(float* c, const float* a, const float* b, int m, int n, int k, int across) {
  __shared__ float ta[2][16][17], tb[2][16][17];
  __shared__ unsigned long long full[2], empty[2];
  const int t = threadIdx.x, i0 = (int)(blockIdx.x / across) * 16, j0 = (int)(blockIdx.x % across) * 16;
  if (t == 0)
    for (int s = 0; s < 2; ++s) init(full + s, 32), init(empty + s, 256);
  __syncthreads();
  const int steps = (k + 15) / 16;
  if (t >= 256) {
    for (int s = 0; s < steps; ++s) {
      const int stage = s & 1;
      if (s >= 2) wait(empty + stage, (s / 2 - 1) & 1);
      for (int q = t - 256; q < 256; q += 32) {
        const int r = q / 16, x = q % 16;
        ta[stage][r][x] = i0 + r < m && s * 16 + x < k ? a[(size_t)(i0 + r) * k + s * 16 + x] : 0.0f;
        tb[stage][r][x] = s * 16 + r < k && j0 + x < n ? b[(size_t)(s * 16 + r) * n + j0 + x] : 0.0f;
      }
      arrive(full + stage);
    }
  } else {
    const int r = t / 16, x = t % 16;
    float sum = 0;
    for (int s = 0; s < steps; ++s) {
      const int stage = s & 1;
      wait(full + stage, (s / 2) & 1);
      for (int q = 0; q < 16; ++q) sum += ta[stage][r][q] * tb[stage][q][x];
      arrive(empty + stage);
    }
    if (i0 + r < m && j0 + x < n) c[(size_t)(i0 + r) * n + j0 + x] = sum;
  }
}

extern "C" void launch_matmul(float* c, const float* a, const float* b, int m, int n, int k, cudaStream_t stream) {
  const int across = (n + 15) / 16;
  ker_matmul<<<(unsigned)((long long)((m + 15) / 16) * across), 288, 0, stream>>>(c, a, b, m, n, k, across);
}
