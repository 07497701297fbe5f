// SAXPY: y becomes a x + y. HANDOUT.md says what to compute.
#include <cuda_runtime.h>

__global__ void ker_saxpy(float* y, const float* x, float a, int n) {
  // YOUR CODE HERE: each element of y is read and overwritten by the same thread.
}

extern "C" void launch_saxpy(float* y, const float* x, float a, int n, cudaStream_t stream) {
  // YOUR CODE HERE: choose threads per block, and launch as many blocks as it takes on `stream`.
}
