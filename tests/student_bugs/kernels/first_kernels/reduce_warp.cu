#include <cuda_runtime.h>

__global__ void sumWarps(float* total, const float* x, int n) {
  __shared__ float blockTotal;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? x[i] : 0.0f;
  if (threadIdx.x == 0) blockTotal = 0.0f;
  __syncthreads();
  for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffff, v, d);
  if (threadIdx.x % 32 == 0) atomicAdd(&blockTotal, v);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(total, blockTotal);
}

extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  cudaMemsetAsync(total, 0, sizeof(float), stream);
  sumWarps<<<(n + 127) / 128, 128, 0, stream>>>(total, x, n);
}
