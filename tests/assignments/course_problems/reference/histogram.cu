#include <cuda_runtime.h>

__global__ void ker_histogram(unsigned int* bins, const unsigned char* x, int n, int count) {
  __shared__ unsigned int own[256];
  for (int bin = threadIdx.x; bin < count; bin += blockDim.x) own[bin] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[x[i]], 1u);
  __syncthreads();
  for (int bin = threadIdx.x; bin < count; bin += blockDim.x)
    if (own[bin]) atomicAdd(&bins[bin], own[bin]);
}

extern "C" void launch_histogram(unsigned int* bins, const unsigned char* x, int n, int count, cudaStream_t stream) {
  cudaMemsetAsync(bins, 0, count * sizeof(unsigned int), stream);
  const int blocks = (n + 1023) / 1024;
  ker_histogram<<<blocks < 64 ? blocks : 64, 256, 0, stream>>>(bins, x, n, count);
}
