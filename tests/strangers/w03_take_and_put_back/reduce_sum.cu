// The running sum goes from hand to hand: take it, add to it, put it back.
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

struct State { float sum; unsigned moves; unsigned seen[256]; };

__global__ void ker_add(State* s, const float* x, int n) {
  float v = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
  v = block_sum(v);
  if (threadIdx.x == 0) {
    if (atomicExch(&s->seen[blockIdx.x], 1u) != 0u) return;  // each block once
    const float taken = atomicExch(&s->sum, 0.0f);
    const float left = atomicExch(&s->sum, taken + v);
    if (left != 0.0f) atomicAdd(&s->moves, 1u);
  }
}

__global__ void ker_store(float* total, const State* s) { *total = s->sum; }

extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  State* s;
  cudaMallocAsync(&s, sizeof(State), stream);
  cudaMemsetAsync(s, 0, sizeof(State), stream);
  ker_add<<<min((n + 255) / 256, 256), 256, 0, stream>>>(s, x, n);
  ker_store<<<1, 1, 0, stream>>>(total, s);
  cudaFreeAsync(s, stream);
}
