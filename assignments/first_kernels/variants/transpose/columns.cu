// A thread per element of the result: writes are next to each other, reads are not.
#include <cuda_runtime.h>

__global__ void ker(float* out, const float* __restrict__ matrix, int rows, int columns) {
  for (long i = blockIdx.x * blockDim.x + threadIdx.x; i < (long)rows * columns; i += gridDim.x * blockDim.x)
    out[i] = matrix[i % rows * columns + i / rows];
}

extern "C" void launch_transpose(float* out, const float* matrix, int rows, int columns, cudaStream_t stream) {
  ker<<<256, 128, 0, stream>>>(out, matrix, rows, columns);
}
