// A thread for eight entries, however long their rows are: it looks for the row of the first, and adds each piece of a
// row to y.
#include <cuda_runtime.h>

constexpr int EACH = 8;

__global__ void ker(float* y, const float* values, const int* columns, const int* starts, const float* x, int rows,
                    int entries) {
  const int begin = (blockIdx.x * blockDim.x + threadIdx.x) * EACH;
  if (begin >= entries) return;
  int row = 0;  // the last one that begins at `begin` or before
  for (int high = rows; high - row > 1;) {
    const int middle = row + (high - row) / 2;
    if (starts[middle] <= begin) {
      row = middle;
    } else {
      high = middle;
    }
  }
  float sum = 0.0f;
  for (int k = begin; k < min(begin + EACH, entries); ++k) {
    while (k >= starts[row + 1]) {
      if (sum != 0.0f) atomicAdd(y + row, sum);
      sum = 0.0f;
      ++row;
    }
    sum = fmaf(values[k], x[columns[k]], sum);
  }
  atomicAdd(y + row, sum);
}

extern "C" void launch_spmv(float* y, const float* values, const int* columns, const int* starts, const float* x,
                            int rows, int width, int entries, cudaStream_t stream) {
  cudaMemsetAsync(y, 0, sizeof(float) * rows, stream);
  const int threads = (entries + EACH - 1) / EACH;
  ker<<<(threads + 255) / 256, 256, 0, stream>>>(y, values, columns, starts, x, rows, entries);
}
