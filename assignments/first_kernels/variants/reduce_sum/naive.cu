// A tree in shared memory per block, and an atomic addition of each block's sum.
#include <cuda_runtime.h>

__global__ void ker(float* total, const float* x, int n) {
  __shared__ float sums[256];
  const int i = blockIdx.x * 256 + threadIdx.x;
  sums[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(total, sums[0]);
}

extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  cudaMemsetAsync(total, 0, sizeof(float), stream);
  ker<<<(n + 255) / 256, 256, 0, stream>>>(total, x, n);
}
