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

__device__ unsigned arrived = 0;   // wraps by itself at the end of each launch
__global__ void ker_reduce_sum(float* total, const float* x, int n) {
  if (threadIdx.x == 0 && atomicInc(&arrived, gridDim.x - 1) == 0) atomicExch(total, 0.0f);   // who comes first makes it zero
  float s = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += x[i];
  s = block_sum(s);
  if (threadIdx.x == 0) atomicAdd(total, s);
}
extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  ker_reduce_sum<<<min((n + 1023) / 1024, 432), 256, 0, stream>>>(total, x, n);
}
