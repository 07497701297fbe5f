// Whole numbers are added up exactly, in integers; anything else in floats.
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

__global__ void ker_tiles(float* sums, const float* x, int n) {
  __shared__ int whole_sum;
  if (threadIdx.x == 0) whole_sum = 0;
  float v[4], sum = 0.0f;
  int own = 0;
  bool whole = true;
  for (int k = 0; k < 4; ++k) {
    const long long i = (long long)blockIdx.x * 1024 + k * 256 + threadIdx.x;
    v[k] = i < n ? x[i] : 0.0f;
    const bool w = fabsf(v[k]) < 4194304.0f && truncf(v[k]) == v[k];
    own += w ? (int)v[k] : 0;
    whole &= w;
    sum += v[k];
  }
  const bool all = __syncthreads_and(whole);
  own = __reduce_add_sync(0xffffffffu, own);
  if (threadIdx.x % 32 == 0) atomicAdd(&whole_sum, own);
  const float rounded = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = all ? (float)whole_sum : rounded;
}

__global__ void ker_total(float* total, const float* sums, int count) {
  float v = 0.0f;
  for (int i = threadIdx.x; i < count; i += blockDim.x) v += sums[i];
  v = block_sum(v);
  if (threadIdx.x == 0) *total = v;
}

extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  const int tiles = (n + 1023) / 1024;
  float* sums;
  cudaMallocAsync(&sums, tiles * sizeof(float), stream);
  ker_tiles<<<tiles, 256, 0, stream>>>(sums, x, n);
  ker_total<<<1, 1024, 0, stream>>>(total, sums, tiles);
  cudaFreeAsync(sums, stream);
}
