// A thread per element.
#include <cuda_runtime.h>

__global__ void ker(float* y, const float* x, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}

extern "C" void launch_saxpy(float* y, const float* x, float a, int n, cudaStream_t stream) {
  ker<<<(n + 255) / 256, 256, 0, stream>>>(y, x, a, n);
}
