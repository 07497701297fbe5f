// Right kernels in another style, a file for each in the folder of its problem: they must pass, too.
// Here a fixed number of blocks walks over the vector.
#include <cuda_runtime.h>

__global__ void ker_vector_add(float* z, const float* x, const float* y, float a, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) z[i] = fmaf(a, x[i], y[i]);
}

extern "C" void launch_vector_add(float* z, const float* x, const float* y, float a, int n, cudaStream_t stream) {
  ker_vector_add<<<4, 256, 0, stream>>>(z, x, y, a, n);
}
