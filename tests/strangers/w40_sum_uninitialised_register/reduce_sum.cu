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

__global__ void ker_reduce_sum(float* total, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v;
  if (i < n) v = x[i];
  v = block_sum(v);
  if (threadIdx.x == 0) atomicAdd(total, v);
}
extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  cudaMemsetAsync(total, 0, sizeof(float), stream);
  ker_reduce_sum<<<(n + 255) / 256, 256, 0, stream>>>(total, x, n);
}
