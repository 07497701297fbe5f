// A fixed number of blocks walks over the vector.
#include <cuda_runtime.h>

__global__ void ker(float* z, const float* __restrict__ x, const float* __restrict__ y, int n) {
  for (long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) z[i] = x[i] + y[i];
}

extern "C" void launch_vector_add(float* z, const float* x, const float* y, int n, cudaStream_t stream) {
  ker<<<min((n + 511) / 512, 1024), 512, 0, stream>>>(z, x, y, n);
}
