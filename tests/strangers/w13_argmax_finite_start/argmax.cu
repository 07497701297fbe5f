#include <cuda_runtime.h>

#include <cfloat>
#include <climits>
struct Best { float number; int place; };
__device__ Best better(Best a, Best b) {
  return b.number > a.number || (b.number == a.number && b.place < a.place) ? b : a;
}
__device__ Best reduce(Best v) {
  __shared__ Best of_warps[32];
  for (int s = 16; s > 0; s /= 2) {
    Best o = {__shfl_down_sync(0xffffffff, v.number, s), __shfl_down_sync(0xffffffff, v.place, s)};
    v = better(v, o);
  }
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int w = 1; w < blockDim.x / 32; ++w) v = better(v, of_warps[w]);
  return v;
}
__global__ void ker_best(Best* found, const float* x, int n) {
  Best v = {-FLT_MAX, INT_MAX};
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v = better(v, Best{x[i], i});
  v = reduce(v);
  if (threadIdx.x == 0) found[blockIdx.x] = v;
}
__global__ void ker_last(int* place, const Best* found, int count) {
  Best v = {-FLT_MAX, INT_MAX};
  for (int i = threadIdx.x; i < count; i += blockDim.x) v = better(v, found[i]);
  v = reduce(v);
  if (threadIdx.x == 0) *place = v.place;
}
extern "C" void launch_argmax(int* place, const float* x, int n, cudaStream_t stream) {
  int blocks = min((n + 1023) / 1024, 432);
  Best* found;
  cudaMallocAsync((void**)&found, blocks * sizeof(Best), stream);
  ker_best<<<blocks, 256, 0, stream>>>(found, x, n);
  ker_last<<<1, 256, 0, stream>>>(place, found, blocks);
  cudaFreeAsync(found, stream);
}
