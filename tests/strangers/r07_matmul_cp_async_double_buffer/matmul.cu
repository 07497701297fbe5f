#include <cuda_runtime.h>

__device__ void copy4(float* to, const float* from, bool there) {
  const unsigned s = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(s), "l"(from), "r"(there ? 4 : 0) : "memory");
}
__global__ void ker_matmul(float* c, const float* a, const float* b, int m, int n, int k, int across) {
  __shared__ float ta[2][16][16], tb[2][16][16];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int i = (int)(blockIdx.x / across) * 16 + ty, j = (int)(blockIdx.x % across) * 16 + tx;
  auto fetch = [&](int stage, int s) {
    const bool in_a = i < m && s + tx < k, in_b = s + ty < k && j < n;
    copy4(&ta[stage][ty][tx], in_a ? a + (size_t)i * k + s + tx : a, in_a);
    copy4(&tb[stage][ty][tx], in_b ? b + (size_t)(s + ty) * n + j : b, in_b);
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  const int steps = (k + 15) / 16;
  float sum = 0;
  fetch(0, 0);
  for (int t = 0; t < steps; ++t) {
    if (t + 1 < steps) {
      fetch((t + 1) & 1, (t + 1) * 16);
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_group 0;" ::: "memory");
    }
    __syncthreads();
    for (int q = 0; q < 16; ++q) sum = fmaf(ta[t & 1][ty][q], tb[t & 1][q][tx], sum);
    __syncthreads();
  }
  if (i < m && j < n) c[(size_t)i * n + j] = sum;
}

extern "C" void launch_matmul(float* c, const float* a, const float* b, int m, int n, int k, cudaStream_t stream) {
  const int across = (n + 15) / 16;
  ker_matmul<<<(unsigned)((long long)((m + 15) / 16) * across), dim3(16, 16), 0, stream>>>(c, a, b, m, n, k, across);
}
