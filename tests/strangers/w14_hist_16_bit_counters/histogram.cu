#include <cuda_runtime.h>

// Two counters of 16 bits in a word: half of the shared memory, so twice as many blocks fit.
__global__ void ker_histogram(int* counts, const int* values, int n, int bins) {
  __shared__ unsigned mine[2048];
  for (int b = threadIdx.x; b < 2048; b += blockDim.x) mine[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    int v = values[i];
    atomicAdd(&mine[v >> 1], v & 1 ? 65536u : 1u);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < bins; b += blockDim.x) {
    int c = (mine[b >> 1] >> (b & 1) * 16) & 0xffff;
    if (c) atomicAdd(&counts[b], c);
  }
}
extern "C" void launch_histogram(int* counts, const int* values, int n, int bins, cudaStream_t stream) {
  cudaMemsetAsync(counts, 0, bins * sizeof(int), stream);
  ker_histogram<<<min((n + 1023) / 1024, 432), 256, 0, stream>>>(counts, values, n, bins);
}
