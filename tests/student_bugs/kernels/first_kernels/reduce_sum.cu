#include <cuda_runtime.h>

__global__ void sumKernel(float* total, const float* x, int n) {
  extern __shared__ float sh[];
  int tid = threadIdx.x;
  float mine = 0.0f;
  for (int i = blockIdx.x * blockDim.x + tid; i < n; i += gridDim.x * blockDim.x) mine += x[i];
  sh[tid] = mine;
  __syncthreads();
  for (int half = blockDim.x / 2; half >= 1; half /= 2) {
    if (tid < half) sh[tid] += sh[tid + half];
    __syncthreads();
  }
  if (tid == 0) atomicAdd(total, sh[0]);
}

extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  cudaMemsetAsync(total, 0, sizeof(float), stream);
  int blocks = min((n + 255) / 256, 512);
  sumKernel<<<blocks, 256, 256 * sizeof(float), stream>>>(total, x, n);
}
