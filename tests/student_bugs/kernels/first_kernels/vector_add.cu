#include <cuda_runtime.h>

__global__ void addThem(float* z, const float* x, const float* y, int n) {
  int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    z[i] = x[i] + y[i];
  }
}

extern "C" void launch_vector_add(float* z, const float* x, const float* y, int n, cudaStream_t stream) {
  int nb = (n + 511) / 512;
  addThem<<<nb, 512, 0, stream>>>(z, x, y, n);
}
