// 5-point stencil over several steps. HANDOUT.md says what to compute.
#include <cuda_runtime.h>

// One step, one thread per cell.
__global__ void ker_stencil(float* after, const float* before, float rate, int rows, int columns) {
  // YOUR CODE HERE
  // 1. The row and column of this thread; nothing to do outside of the plate.
  // 2. A cell of the border is copied, any other one takes from its four neighbours.
}

extern "C" void launch_stencil(float* after, const float* before, float rate, int rows, int columns, int steps,
                               cudaStream_t stream) {
  // YOUR CODE HERE: a launch for each step, between `after` and a second array of your own; the last one writes
  // `after`.
}
