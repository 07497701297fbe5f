// Histogram. HANDOUT.md says what to compute.
#include <cuda_runtime.h>

__global__ void ker_histogram(int* counts, const int* values, int n, int bins) {
  // YOUR CODE HERE
  // 1. Counters of the block in shared memory, which begin at 0.
  // 2. atomicAdd to the counter of each value.
  // 3. atomicAdd of the block's counters to those of all blocks.
}

extern "C" void launch_histogram(int* counts, const int* values, int n, int bins, cudaStream_t stream) {
  // YOUR CODE HERE: counts hold garbage; set them to 0 on `stream`, then launch.
}
