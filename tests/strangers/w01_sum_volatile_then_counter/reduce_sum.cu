// One launch: blocks leave their sums in slots, and whoever counts last empties the slots.
#include <cuda_runtime.h>

__global__ void ker_reduce_sum(float* total, unsigned* slots, unsigned* done, const float* x, int n) {
  __shared__ float part[8];
  __shared__ bool last;
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float s = 0;
    for (int w = 0; w < 8; ++w) s += part[w];
    *(volatile unsigned*)(slots + blockIdx.x) = __float_as_uint(s);
    last = atomicAdd(done, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last || threadIdx.x >= 32) return;
  float s = 0;
  for (int b = threadIdx.x; b < gridDim.x; b += 32) s += __uint_as_float(atomicExch(slots + b, 0u));
  for (int d = 16; d > 0; d /= 2) s += __shfl_down_sync(0xffffffffu, s, d);
  if (threadIdx.x == 0) *total = s;
}

extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  int blocks = (n + 1023) / 1024;
  if (blocks > 512) blocks = 512;
  unsigned* slots;
  cudaMallocAsync(&slots, (blocks + 1) * sizeof(unsigned), stream);
  cudaMemsetAsync(slots, 0, (blocks + 1) * sizeof(unsigned), stream);
  ker_reduce_sum<<<blocks, 256, 0, stream>>>(total, slots, slots + blocks, x, n);
  cudaFreeAsync(slots, stream);
}
