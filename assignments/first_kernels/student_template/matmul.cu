// Matrix multiplication in float32: C = A B. HANDOUT.md says what to compute.
#include <cuda_runtime.h>

__global__ void ker_matmul(float* c, const float* a, const float* b, int m, int n, int k) {
  // YOUR CODE HERE
  // 1. Which tile of C this block computes, and which of its elements this thread.
  // 2. Along k, step by step: a tile of A and one of B into shared memory, zeros where they end; wait;
  //    products of their elements; wait, before the tiles are overwritten.
  // 3. The elements of C that there are.
}

extern "C" void launch_matmul(float* c, const float* a, const float* b, int m, int n, int k, cudaStream_t stream) {
  // YOUR CODE HERE: the grid's y and z have at most 65,535 blocks.
}
