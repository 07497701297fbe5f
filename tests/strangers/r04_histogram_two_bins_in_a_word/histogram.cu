// Histogram: two counters of 16 bits in each word of shared memory, emptied before one of them can overflow.
#include <cuda_runtime.h>

constexpr int THREADS = 256, ROUNDS = 255;  // 65,280 values between two times

__global__ void ker_histogram(int* counts, const int* values, int n, int bins) {
  __shared__ unsigned pairs[2048];
  const long long share = static_cast<long long>(THREADS) * ROUNDS, words = (bins + 1) / 2;
  for (int word = threadIdx.x; word < words; word += THREADS) pairs[word] = 0;
  __syncthreads();
  for (long long base = blockIdx.x * share; base < n; base += gridDim.x * share) {
    const long long end = base + share < n ? base + share : n;
    for (long long i = base + threadIdx.x; i < end; i += THREADS) {
      const int value = values[i];
      atomicAdd(pairs + value / 2, value % 2 ? 0x10000u : 1u);
    }
    __syncthreads();
    for (int word = threadIdx.x; word < words; word += THREADS) {
      const unsigned both = pairs[word];
      pairs[word] = 0;
      if (both & 0xffffu) atomicAdd(counts + 2 * word, both & 0xffffu);
      if (both >> 16) atomicAdd(counts + 2 * word + 1, both >> 16);
    }
    __syncthreads();
  }
}

extern "C" void launch_histogram(int* counts, const int* values, int n, int bins, cudaStream_t stream) {
  cudaMemsetAsync(counts, 0, bins * sizeof(int), stream);
  const int shares = (n + THREADS * ROUNDS - 1) / (THREADS * ROUNDS);
  ker_histogram<<<shares, THREADS, 0, stream>>>(counts, values, n, bins);
}
