#include <cuda_runtime.h>

__global__ void ker_histogram(int* counts, const int* values, int n, int bins) {
  extern __shared__ int mine[];
  for (int b = threadIdx.x; b < bins; b += blockDim.x) mine[b] = 0;
  __syncthreads();
  const int lane = threadIdx.x % 32, step = gridDim.x * blockDim.x;
  for (int first = blockIdx.x * blockDim.x + threadIdx.x - lane; first < n; first += step) {
    const int b = first + lane < n ? values[first + lane] : -1;
    const unsigned same = __match_any_sync(0xffffffffu, b);
    if (b >= 0 && lane == __ffs(same) - 1) atomicAdd(mine + b, __popc(same));
  }
  __syncthreads();
  for (int b = threadIdx.x; b < bins; b += blockDim.x)
    if (const int c = mine[b]) atomicAdd(counts + b, c);
}

extern "C" void launch_histogram(int* counts, const int* values, int n, int bins, cudaStream_t stream) {
  cudaMemsetAsync(counts, 0, size_t(bins) * 4, stream);
  int blocks = (n + 2047) / 2048;
  if (blocks > 648) blocks = 648;
  ker_histogram<<<blocks, 192, bins * sizeof(int), stream>>>(counts, values, n, bins);
}
