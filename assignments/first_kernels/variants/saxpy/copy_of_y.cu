// A copy of y first: the sum is not computed in place.
#include <cuda_runtime.h>

__global__ void ker(float* y, const float* before, const float* x, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaf(a, x[i], before[i]);
}

extern "C" void launch_saxpy(float* y, const float* x, float a, int n, cudaStream_t stream) {
  float* before;
  cudaMallocAsync(&before, n * sizeof(float), stream);
  cudaMemcpyAsync(before, y, n * sizeof(float), cudaMemcpyDeviceToDevice, stream);
  ker<<<(n + 255) / 256, 256, 0, stream>>>(y, before, x, a, n);
  cudaFreeAsync(before, stream);
}
