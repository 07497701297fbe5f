// Two warps for each row.
#include <cuda_runtime.h>

__global__ void ker_spmv(float* y, const float* values, const int* columns, const int* starts, const float* x,
                         int rows) {
  __shared__ float half[4];
  const int row = blockIdx.x * 4 + threadIdx.x / 64, t = threadIdx.x % 64;
  float sum = 0;
  if (row < rows)
    for (int k = starts[row] + t; k < starts[row + 1]; k += 64) sum += values[k] * x[columns[k]];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
  if (t == 32) half[threadIdx.x / 64] = sum;
  __syncthreads();
  if (t == 0 && row < rows) y[row] = sum + half[threadIdx.x / 64];
}

extern "C" void launch_spmv(float* y, const float* values, const int* columns, const int* starts, const float* x,
                            int rows, int width, int entries, cudaStream_t stream) {
  const int threads = rows * 64;
  ker_spmv<<<(threads + 255) / 256, 256, 0, stream>>>(y, values, columns, starts, x, rows);
}
