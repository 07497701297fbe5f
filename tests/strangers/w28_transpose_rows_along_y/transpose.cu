// Tiles of 64 x 32.
#include <cuda_runtime.h>

__global__ void ker_transpose(float* out, const float* matrix, int rows, int columns) {
  __shared__ float tile[64][33];
  const int c = blockIdx.x * 32 + threadIdx.x, r0 = blockIdx.y * 64;
  for (int k = threadIdx.y; k < 64; k += 8)
    if (r0 + k < rows && c < columns) tile[k][threadIdx.x] = matrix[(size_t)(r0 + k) * columns + c];
  __syncthreads();
  for (int k = threadIdx.y; k < 32; k += 8)
    for (int h = threadIdx.x; h < 64; h += 32)
      if (r0 + h < rows && blockIdx.x * 32 + k < columns)
        out[(size_t)(blockIdx.x * 32 + k) * rows + r0 + h] = tile[h][k];
}

extern "C" void launch_transpose(float* out, const float* matrix, int rows, int columns, cudaStream_t stream) {
  ker_transpose<<<dim3((columns + 31) / 32, (rows + 63) / 64), dim3(32, 8), 0, stream>>>(out, matrix, rows, columns);
}
