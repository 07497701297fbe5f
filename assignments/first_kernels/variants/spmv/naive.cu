// A thread per row.
#include <cuda_runtime.h>

__global__ void ker(float* y, const float* values, const int* columns, const int* starts, const float* x, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int k = starts[row]; k < starts[row + 1]; ++k) sum += values[k] * x[columns[k]];
  y[row] = sum;
}

extern "C" void launch_spmv(float* y, const float* values, const int* columns, const int* starts, const float* x,
                            int rows, int width, int entries, cudaStream_t stream) {
  ker<<<(rows + 127) / 128, 128, 0, stream>>>(y, values, columns, starts, x, rows);
}
