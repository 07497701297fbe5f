// One launch: the block that finishes last adds up the partial sums.
#include <cuda_runtime.h>

constexpr int THREADS = 256, BLOCKS = 256;

__device__ float sum_over_block(float sum) {
  __shared__ float sums[THREADS];
  __syncthreads();
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  return sums[0];
}

__global__ void ker(float* total, float* sums, unsigned* done, const float* x, int n) {
  __shared__ bool last;
  float sum = 0.0f;
  for (long i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) sum += x[i];
  sum = sum_over_block(sum);
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = sum;
    __threadfence();
    last = atomicAdd(done, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  sum = sum_over_block(threadIdx.x < gridDim.x ? sums[threadIdx.x] : 0.0f);
  if (threadIdx.x == 0) *total = sum;
}

extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  float* scratch;
  cudaMallocAsync(&scratch, (BLOCKS + 1) * sizeof(float), stream);
  unsigned* done = reinterpret_cast<unsigned*>(scratch + BLOCKS);
  cudaMemsetAsync(done, 0, sizeof(unsigned), stream);
  ker<<<min((n + THREADS - 1) / THREADS, BLOCKS), THREADS, 0, stream>>>(total, scratch, done, x, n);
  cudaFreeAsync(scratch, stream);
}
