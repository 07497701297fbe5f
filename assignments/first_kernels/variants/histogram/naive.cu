// Atomic additions in memory, a thread per value.
#include <cuda_runtime.h>

__global__ void ker(int* counts, const int* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(counts + values[i], 1);
}

extern "C" void launch_histogram(int* counts, const int* values, int n, int bins, cudaStream_t stream) {
  cudaMemsetAsync(counts, 0, bins * sizeof(int), stream);
  ker<<<(n + 255) / 256, 256, 0, stream>>>(counts, values, n);
}
