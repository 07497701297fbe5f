#include <cuda_runtime.h>

// A queue of chunks in a __device__ counter that the last block sets back; producer warp and consumer warps with named barriers.
__device__ unsigned next_chunk = 0, left = 0;
__global__ void __launch_bounds__(128) ker(float* y, const float* x, float a, int n) {
  __shared__ int chunk;
  for (;;) {
    if (threadIdx.x < 32) {
      if (threadIdx.x == 0) chunk = atomicAdd(&next_chunk, 1u);
      __syncwarp();
      asm volatile("barrier.sync 1, 128;" ::: "memory");
    } else {
      asm volatile("barrier.sync 1, 128;" ::: "memory");
    }
    long long at = (long long)chunk * 1024;
    if (at >= n) break;
    for (int k = threadIdx.x; k < 1024 && at + k < n; k += 128) y[at + k] = fmaf(a, x[at + k], y[at + k]);
    asm volatile("barrier.sync 2, 128;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    if (atomicInc(&left, gridDim.x - 1) == gridDim.x - 1) { __threadfence(); next_chunk = 0; }
  }
}
extern "C" void launch_saxpy(float* y, const float* x, float a, int n, cudaStream_t stream) {
  ker<<<min((n + 1023) / 1024, 216), 128, 0, stream>>>(y, x, a, n);
}
