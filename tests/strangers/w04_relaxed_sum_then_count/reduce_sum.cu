// One launch: every block adds its share, the last one takes the sum and leaves zeros for the next call.
#include <cuda_runtime.h>

__device__ inline float block_sum(float v) {   // the sum in all threads
  __shared__ float part[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  __syncthreads();
  if (lane == 0) part[warp] = v;
  __syncthreads();
  v = lane < (blockDim.x + 31) / 32 ? part[lane] : 0.0f;
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

__device__ float g_sum;
__device__ unsigned g_done;

__global__ void ker_sum(float* total, const float* x, int n) {
  float v = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
  v = block_sum(v);
  if (threadIdx.x == 0) {
    const float before = atomicAdd(&g_sum, v);
    const unsigned k = atomicInc(&g_done, gridDim.x - 1);
    if (k == gridDim.x - 1) {
      const float all = atomicExch(&g_sum, 0.0f);
      *total = gridDim.x == 1 ? before + v : all;
    } else if (before != before) {
      __nanosleep(1);
    }
  }
}

extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  ker_sum<<<min((n + 1023) / 1024, 512), 256, 0, stream>>>(total, x, n);
}
