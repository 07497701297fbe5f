// The sum of a vector. HANDOUT.md says what to compute.
#include <cuda_runtime.h>

__global__ void ker_reduce_sum(float* sums, const float* x, int n) {
  // YOUR CODE HERE
  // 1. Each thread adds up a share of the vector.
  // 2. The threads of the block add up their sums: by shuffles, by shared memory, or both.
  // 3. One thread writes the block's sum.
}

extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  // YOUR CODE HERE: two launches, the second of one block, or one launch whose blocks add to a total that begins at 0.
}
