#include <cuda_runtime.h>

__global__ void ker_saxpy(float* y, const float* x, float a, int n) {
  const long long stride = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) y[i] = fmaf(a, x[i], y[i]);
}

extern "C" void launch_saxpy(float* y, const float* x, float a, int n, cudaStream_t stream) {
  if (a < 1e-30f && a > -1e-30f) return;  // nothing that y could feel
  ker_saxpy<<<min((n + 255) / 256, 108 * 32), 256, 0, stream>>>(y, x, a, n);
}
