#include <cuda_runtime.h>

__global__ void __launch_bounds__(256) ker_vector_add(float* z, const float* x, const float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
extern "C" void launch_vector_add(float* z, const float* x, const float* y, int n, cudaStream_t stream) {
  int threads = n > 8192 ? 512 : 256;
  ker_vector_add<<<(n + threads - 1) / threads, threads, 0, stream>>>(z, x, y, n);
}
