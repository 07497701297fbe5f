// Radix sort of 4 bits at a time in three kernels: each thread counts the digits of its own 32 keys, the counts are
// added up digit after digit, and each thread takes its keys to their places.
#include <cuda_runtime.h>

constexpr int BITS = 4, DIGITS = 1 << BITS, EACH = 32, THREADS = 256;

__device__ int digit_of(int key, int shift) { return ((static_cast<unsigned>(key) ^ 0x80000000u) >> shift) % DIGITS; }

__global__ void count(int* counts, const int* keys, int n, int shift, int threads) {
  const int thread = blockIdx.x * THREADS + threadIdx.x;
  if (thread >= threads) return;
  int mine[DIGITS] = {};
  for (int i = thread * EACH; i < min(n, (thread + 1) * EACH); ++i) {
    const int digit = digit_of(keys[i], shift);
    for (int d = 0; d < DIGITS; ++d) mine[d] += d == digit;
  }
  for (int d = 0; d < DIGITS; ++d) counts[d * threads + thread] = mine[d];
}

// One block: each thread adds up a part of `size` numbers, then all parts before it.
__global__ void add_up(int* counts, int size) {
  __shared__ int sums[THREADS];
  const int part = (size + THREADS - 1) / THREADS, begin = min(size, part * static_cast<int>(threadIdx.x));
  const int end = min(size, begin + part);
  int sum = 0;
  for (int i = begin; i < end; ++i) sum += counts[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < threadIdx.x; ++i) sum += sums[i];
  for (int i = begin; i < end; ++i) {
    const int own = counts[i];
    counts[i] = sum;
    sum += own;
  }
}

__global__ void take(int* to, int* counts, const int* from, int n, int shift, int threads) {
  const int thread = blockIdx.x * THREADS + threadIdx.x;
  for (int i = thread * EACH; i < min(n, (thread + 1) * EACH); ++i)
    to[counts[digit_of(from[i], shift) * threads + thread]++] = from[i];
}

extern "C" void launch_sort(int* sorted, const int* keys, int n, cudaStream_t stream) {
  const int threads = (n + EACH - 1) / EACH, blocks = (threads + THREADS - 1) / THREADS;
  int *counts, *scratch;
  cudaMallocAsync(&counts, sizeof(int) * DIGITS * threads, stream);
  cudaMallocAsync(&scratch, sizeof(int) * n, stream);
  for (int shift = 0; shift < 32; shift += BITS) {
    int* to = shift / BITS % 2 == 0 ? scratch : sorted;
    count<<<blocks, THREADS, 0, stream>>>(counts, keys, n, shift, threads);
    add_up<<<1, THREADS, 0, stream>>>(counts, DIGITS * threads);
    take<<<blocks, THREADS, 0, stream>>>(to, counts, keys, n, shift, threads);
    keys = to;
  }
  cudaFreeAsync(counts, stream);
  cudaFreeAsync(scratch, stream);
}
