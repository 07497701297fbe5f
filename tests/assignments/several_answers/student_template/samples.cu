#include <cuda_runtime.h>

extern "C" void launch_samples(float* y, int seed, float rate, int n, cudaStream_t stream) {
  // Write a kernel above, and launch it here.
}
