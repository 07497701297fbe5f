// Atomic additions of floats to the totals.
#include <cuda_runtime.h>

__global__ void ker_histogram(float* totals, const int* values, int n, int bins) {
  extern __shared__ int mine[];
  for (int b = threadIdx.x; b < bins; b += blockDim.x) mine[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&mine[values[i]], 1);
  __syncthreads();
  for (int b = threadIdx.x; b < bins; b += blockDim.x)
    if (mine[b] != 0) atomicAdd(&totals[b], (float)mine[b]);
}
__global__ void ker_counts(int* counts, const float* totals, int bins) {
  const int b = blockIdx.x * blockDim.x + threadIdx.x;
  if (b < bins) counts[b] = (int)totals[b];
}

extern "C" void launch_histogram(int* counts, const int* values, int n, int bins, cudaStream_t stream) {
  float* totals;
  cudaMallocAsync(&totals, bins * 4, stream);
  cudaMemsetAsync(totals, 0, bins * 4, stream);
  int blocks = (n + 4095) / 4096;
  if (blocks > 864) blocks = 864;
  ker_histogram<<<blocks, 256, bins * sizeof(int), stream>>>(totals, values, n, bins);
  ker_counts<<<(bins + 255) / 256, 256, 0, stream>>>(counts, totals, bins);
  cudaFreeAsync(totals, stream);
}
