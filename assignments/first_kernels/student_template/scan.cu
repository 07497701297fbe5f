// Inclusive scan. HANDOUT.md says what to compute.
#include <cuda_runtime.h>

// Each block scans its tile, and leaves the sum of the tile.
__global__ void ker_scan_tiles(float* sums, float* of_tiles, const float* x, int n) {
  // YOUR CODE HERE
}

// Each block adds the sum of all tiles before its own.
__global__ void ker_add_before(float* sums, const float* of_tiles, int n) {
  // YOUR CODE HERE
}

extern "C" void launch_scan(float* sums, const float* x, int n, cudaStream_t stream) {
  // YOUR CODE HERE: tiles, a scan of their sums, an addition to each. In one pass it is faster.
}
