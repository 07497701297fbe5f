// Pairs of a number and its place.
#include <cuda_runtime.h>
#include <cfloat>

struct Best {
  float number;
  int place;
};
__device__ Best better(Best a, Best b) {
  return b.number > a.number || (b.number == a.number && b.place < a.place) ? b : a;
}
__device__ Best of_block(Best b) {
  __shared__ Best warps[8];
  for (int d = 16; d > 0; d /= 2) {
    Best o{__shfl_down_sync(0xffffffffu, b.number, d), __shfl_down_sync(0xffffffffu, b.place, d)};
    b = better(b, o);
  }
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = b;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int w = 1; w < 8; ++w) b = better(b, warps[w]);
  return b;
}
// A thread begins with its first element, or, without one, with what loses to all of them.
__global__ void ker_best(Best* found, const float* x, int n) {
  Best b{-FLT_MAX, 0x7fffffff};
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] < b.number) b.place = 0;
  for (; i < n; i += gridDim.x * blockDim.x) b = better(b, Best{x[i], i});
  b = of_block(b);
  if (threadIdx.x == 0) found[blockIdx.x] = b;
}
__global__ void ker_last(int* place, const Best* found, int blocks) {
  Best b{-FLT_MAX, 0x7fffffff};
  for (int i = threadIdx.x; i < blocks; i += blockDim.x) b = better(b, found[i]);
  b = of_block(b);
  if (threadIdx.x == 0) *place = b.place == 0x7fffffff ? 0 : b.place;
}

extern "C" void launch_argmax(int* place, const float* x, int n, cudaStream_t stream) {
  int blocks = (n + 1023) / 1024;
  if (blocks > 432) blocks = 432;
  Best* found;
  cudaMallocAsync(&found, blocks * sizeof(Best), stream);
  ker_best<<<blocks, 256, 0, stream>>>(found, x, n);
  ker_last<<<1, 256, 0, stream>>>(place, found, blocks);
  cudaFreeAsync(found, stream);
}
