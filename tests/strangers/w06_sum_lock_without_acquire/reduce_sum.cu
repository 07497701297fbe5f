// The sum of a vector: blocks add to the total one after the other, under a lock.
#include <cuda_runtime.h>

__device__ int lock = 0;

__global__ void ker_reduce_sum(float* total, const float* x, int n) {
  __shared__ float parts[8];
  float sum = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += x[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < 8; ++warp) sum += parts[warp];
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    total[0] = total[0] + sum;
    __threadfence();  // the total has to be there before the lock is free
    atomicExch(&lock, 0);
  }
}

extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  cudaMemsetAsync(total, 0, sizeof(float), stream);
  const int blocks = (n + 2047) / 2048;
  ker_reduce_sum<<<blocks < 864 ? blocks : 864, 256, 0, stream>>>(total, x, n);
}
