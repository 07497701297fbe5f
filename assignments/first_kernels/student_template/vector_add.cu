// Vector addition: z = x + y. HANDOUT.md says what to compute.
#include <cuda_runtime.h>

__global__ void ker_vector_add(float* z, const float* x, const float* y, int n) {
  // YOUR CODE HERE
  // 1. The element of this thread, from its block and its place in the block.
  // 2. Nothing to do if there is no such element.
}

extern "C" void launch_vector_add(float* z, const float* x, const float* y, int n, cudaStream_t stream) {
  // YOUR CODE HERE: choose threads per block, and launch as many blocks as it takes on `stream`.
}
