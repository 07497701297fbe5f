// The place of the largest number. Distances from the first number are compared; two launches.
#include <cuda_runtime.h>
#include <math_constants.h>

struct Best {
  float number;
  int place;
};

__device__ Best better(Best a, Best b) {
  if (a.number != b.number) return a.number > b.number ? a : b;
  return a.place < b.place ? a : b;
}

__device__ Best of_block(Best mine) {
  __shared__ Best parts[8];
  for (int offset = 16; offset > 0; offset /= 2)
    mine = better(mine, Best{__shfl_down_sync(0xffffffff, mine.number, offset), __shfl_down_sync(0xffffffff, mine.place, offset)});
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = mine;
  __syncthreads();
  for (int warp = 0; warp < 8; ++warp) mine = better(mine, parts[warp]);
  return mine;
}

__global__ void ker_best(Best* found, const float* x, int n) {
  const float origin = isinf(x[0]) ? 0.0f : x[0];
  Best mine{-CUDART_INF_F, 0x7fffffff};
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) mine = better(mine, Best{x[i] - origin, i});
  mine = of_block(mine);
  if (threadIdx.x == 0) found[blockIdx.x] = mine;
}

__global__ void ker_last(int* place, const Best* found, int blocks) {
  Best mine{-CUDART_INF_F, 0x7fffffff};
  for (int i = threadIdx.x; i < blocks; i += 256) mine = better(mine, found[i]);
  mine = of_block(mine);
  if (threadIdx.x == 0) place[0] = mine.place;
}

extern "C" void launch_argmax(int* place, const float* x, int n, cudaStream_t stream) {
  Best* found;
  const int blocks = (n + 2047) / 2048 < 864 ? (n + 2047) / 2048 : 864;
  cudaMallocAsync(&found, blocks * sizeof(Best), stream);
  ker_best<<<blocks, 256, 0, stream>>>(found, x, n);
  ker_last<<<1, 256, 0, stream>>>(place, found, blocks);
  cudaFreeAsync(found, stream);
}
