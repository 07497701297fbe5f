// Sorting of integer keys. HANDOUT.md says what to compute, and with which idea you get how far.
#include <cuda_runtime.h>

// For example one pass of a radix sort, or one step of a bitonic or merge sort.
__global__ void ker_sort(int* sorted, const int* keys, int n) {
  // YOUR CODE HERE
}

extern "C" void launch_sort(int* sorted, const int* keys, int n, cudaStream_t stream) {
  // YOUR CODE HERE: the launches of all passes on `stream`; `keys` must stay as it is, the last one writes `sorted`.
}
