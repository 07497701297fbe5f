#include <cuda_runtime.h>

extern "C" void launch_hits(unsigned long long* hits, unsigned int seed, size_t n, cudaStream_t stream) {
  // Write a kernel above, and launch it here.
}
