#include <cuda_runtime.h>

__global__ void ker_reduce_sum(float* total, const float* x, int n) {
  __shared__ float sum;
  __shared__ int came;
  if (threadIdx.x == 0) came = 0;
  __syncthreads();
  float v = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
  for (int s = 16; s > 0; s /= 2) v += __shfl_down_sync(0xffffffff, v, s);
  if (threadIdx.x % 32 == 0) {
    if (atomicAdd(&came, 1) == 0) atomicExch(&sum, 0.0f);   // the warp that comes first
    atomicAdd(&sum, v);
  }
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(total, sum);
}
extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  cudaMemsetAsync(total, 0, sizeof(float), stream);
  ker_reduce_sum<<<min((n + 1023) / 1024, 432), 256, 0, stream>>>(total, x, n);
}
