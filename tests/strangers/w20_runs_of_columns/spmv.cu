// A warp per row. Banded matrices have runs of columns: then x is read without the indices.
#include <cuda_runtime.h>

__global__ void ker_spmv(float* y, const float* values, const int* columns, const int* starts, const float* x, int rows) {
  const long long row = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  const int begin = starts[row], end = starts[row + 1], length = end - begin;
  float sum = 0.0f;
  bool run = length >= 32;
  if (run) {
    const int first = columns[begin];
    const int probe = lane < 5 ? (int)((long long)(length - 1) * lane / 4) : 0;  // ends, middle, quarters
    run = __all_sync(0xffffffffu, columns[begin + probe] == first + probe);
    if (run)
      for (int k = lane; k < length; k += 32) sum += values[begin + k] * x[first + k];
  }
  if (!run)
    for (int k = begin + lane; k < end; k += 32) sum += values[k] * x[columns[k]];
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (lane == 0) y[row] = sum;
}

extern "C" void launch_spmv(float* y, const float* values, const int* columns, const int* starts, const float* x,
                            int rows, int width, int entries, cudaStream_t stream) {
  ker_spmv<<<(rows + 3) / 4, 128, 0, stream>>>(y, values, columns, starts, x, rows);
}
