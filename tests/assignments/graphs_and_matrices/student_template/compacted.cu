#include <cuda_runtime.h>

extern "C" void launch_compacted(long long* y, const long long* x, const bool* mask, int n, cudaStream_t stream) {
  // Write a kernel above, and launch it here.
}
