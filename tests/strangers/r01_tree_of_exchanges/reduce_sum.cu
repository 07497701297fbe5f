// 64 blocks and a tree of 63 nodes. The second to come to a node takes what the first has left and climbs.
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

using Word = unsigned long long;

__global__ void ker_sum(float* total, Word* nodes, const float* x, int n) {
  float v = 0.0f;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x) v += x[i];
  v = block_sum(v);
  if (threadIdx.x != 0) return;
  for (int node = (64 + blockIdx.x) / 2; node >= 1; node /= 2) {
    const Word other = atomicExch(&nodes[node], (1ull << 32) | __float_as_uint(v));
    if (other == 0) return;
    v += __uint_as_float((unsigned)other);
  }
  *total = v;
}

extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  Word* nodes;
  cudaMallocAsync(&nodes, 64 * sizeof(Word), stream);
  cudaMemsetAsync(nodes, 0, 64 * sizeof(Word), stream);
  ker_sum<<<64, 256, 0, stream>>>(total, nodes, x, n);
  cudaFreeAsync(nodes, stream);
}
