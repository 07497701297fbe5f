// Sparse matrix (CSR) times vector. HANDOUT.md says what to compute.
#include <cuda_runtime.h>

__global__ void ker_spmv(float* y, const float* values, const int* columns, const int* starts, const float* x,
                         int rows) {
  // YOUR CODE HERE
  // 1. The row of this thread, or of its group of threads.
  // 2. values[k] * x[columns[k]] for each k from starts[row] to starts[row + 1], without the latter.
  // 3. The sum, also 0 of an empty row, written once.
}

extern "C" void launch_spmv(float* y, const float* values, const int* columns, const int* starts, const float* x,
                            int rows, int width, int entries, cudaStream_t stream) {
  // YOUR CODE HERE: choose threads per row and per block, and launch on `stream`.
}
