// Matrix transpose. HANDOUT.md says what to compute.
#include <cuda_runtime.h>

__global__ void ker_transpose(float* out, const float* matrix, int rows, int columns) {
  // YOUR CODE HERE
  // 1. A tile of the matrix into shared memory: neighbouring threads read neighbouring columns.
  // 2. Wait for all threads of the block.
  // 3. The tile's columns out as rows: neighbouring threads write neighbouring elements.
}

extern "C" void launch_transpose(float* out, const float* matrix, int rows, int columns, cudaStream_t stream) {
  // YOUR CODE HERE: the grid's y and z have at most 65,535 blocks.
}
