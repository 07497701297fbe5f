// A histogram of its own in memory for each block; a second kernel adds them up.
#include <cuda_runtime.h>

constexpr int BLOCKS = 64;

__global__ void ker_count(int* table, const int* values, int n, int bins) {
  int* own = table + blockIdx.x * bins;
  for (long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += BLOCKS * blockDim.x) atomicAdd(own + values[i], 1);
}

__global__ void ker_sum(int* counts, const int* table, int bins) {
  const int bin = blockIdx.x * blockDim.x + threadIdx.x;
  if (bin >= bins) return;
  int sum = 0;
  for (int block = 0; block < BLOCKS; ++block) sum += table[block * bins + bin];
  counts[bin] = sum;
}

extern "C" void launch_histogram(int* counts, const int* values, int n, int bins, cudaStream_t stream) {
  int* table;
  cudaMallocAsync(&table, BLOCKS * bins * sizeof(int), stream);
  cudaMemsetAsync(table, 0, BLOCKS * bins * sizeof(int), stream);
  ker_count<<<BLOCKS, 256, 0, stream>>>(table, values, n, bins);
  ker_sum<<<(bins + 127) / 128, 128, 0, stream>>>(counts, table, bins);
  cudaFreeAsync(table, stream);
}
