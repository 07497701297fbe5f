#include <cuda_runtime.h>

__device__ float block_sum(float v) {
  __shared__ float of_warps[32];
  for (int step = 16; step > 0; step /= 2) v += __shfl_down_sync(0xffffffff, v, step);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < blockDim.x / 32 ? of_warps[threadIdx.x] : 0.0f;
    for (int step = 16; step > 0; step /= 2) v += __shfl_down_sync(0xffffffff, v, step);
  }
  return v;
}

__device__ unsigned tickets = 0, published = 0;
__device__ float parts[1024];
__global__ void ker_reduce_sum(float* total, const float* x, int n) {
  __shared__ unsigned ticket;
  if (threadIdx.x == 0) ticket = atomicAdd(&tickets, 1u);   // dynamic order: who starts last has the last tile
  __syncthreads();
  unsigned tile = ticket;
  float s = 0.0f;
  for (int i = tile * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += x[i];
  s = block_sum(s);
  if (threadIdx.x == 0) {
    parts[tile] = s;
    __threadfence();
    atomicAdd(&published, 1u);
    __threadfence();
    if (tile == gridDim.x - 1) {
      float all = 0.0f;
      for (int b = 0; b < gridDim.x; ++b) all += parts[b];
      total[0] = all;
      tickets = 0;
      published = 0;
    }
  }
}
extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  ker_reduce_sum<<<min((n + 1023) / 1024, 432), 256, 0, stream>>>(total, x, n);
}
