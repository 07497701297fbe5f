// Counters of even and of odd bins have a lock each; a block adds to both at once so that nobody sees half of it.
#include <cuda_runtime.h>

struct Locks { int started[512]; int lock[2]; };

__device__ void take(int* lock) {
  while (atomicCAS(lock, 0, 1) != 0) __nanosleep(20);
  __threadfence();
}
__device__ void give(int* lock) {
  __threadfence();
  atomicExch(lock, 0);
}

__global__ void ker_histogram(int* counts, Locks* s, const int* values, int n, int bins) {
  extern __shared__ int own[];
  __shared__ int odd;
  for (int b = threadIdx.x; b < bins; b += blockDim.x) own[b] = 0;
  if (threadIdx.x == 0) odd = 0;
  __syncthreads();
  int mine = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const int v = values[i];
    atomicAdd(&own[v], 1);
    mine += (v & 1) ? 1 : -1;
  }
  atomicAdd(&odd, mine);
  __syncthreads();
  const int first = odd > 0 ? 1 : 0;  // the fuller half first
  if (threadIdx.x == 0) {
    if (atomicExch(&s->started[blockIdx.x], 1) != 0) __trap();
    take(&s->lock[first]);
    take(&s->lock[first ^ 1]);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < bins; b += blockDim.x) counts[b] += own[b];
  __syncthreads();
  if (threadIdx.x == 0) {
    give(&s->lock[first ^ 1]);
    give(&s->lock[first]);
  }
}

extern "C" void launch_histogram(int* counts, const int* values, int n, int bins, cudaStream_t stream) {
  Locks* s;
  cudaMallocAsync(&s, sizeof(Locks), stream);
  cudaMemsetAsync(s, 0, sizeof(Locks), stream);
  cudaMemsetAsync(counts, 0, bins * sizeof(int), stream);
  ker_histogram<<<min((n + 2047) / 2048, 512), 256, bins * sizeof(int), stream>>>(counts, s, values, n, bins);
  cudaFreeAsync(s, stream);
}
