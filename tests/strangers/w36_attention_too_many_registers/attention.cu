#include <cuda_runtime.h>

constexpr int DEPTH = 64;
// A thread per query: q and the sums stay in registers; a block of 1024 shares tiles of keys.
__global__ void ker_attention(float* out, const float* q, const float* k, const float* v, int n) {
  __shared__ float ks[32][DEPTH], vs[32][DEPTH];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float mine[DEPTH], sum[DEPTH];
#pragma unroll
  for (int d = 0; d < DEPTH; ++d) { mine[d] = i < n ? q[(size_t)i * DEPTH + d] * 0.125f : 0.0f; sum[d] = 0.0f; }
  float top = -INFINITY, all = 0.0f;
  int end = min(n, (int)((blockIdx.x + 1) * blockDim.x));
  for (int first = 0; first < end; first += 32) {
    __syncthreads();
    for (int e = threadIdx.x; e < 32 * DEPTH; e += blockDim.x) {
      bool there = first + e / DEPTH < n;
      ks[e / DEPTH][e % DEPTH] = there ? k[(size_t)first * DEPTH + e] : 0.0f;
      vs[e / DEPTH][e % DEPTH] = there ? v[(size_t)first * DEPTH + e] : 0.0f;
    }
    __syncthreads();
    for (int j = 0; j < 32 && first + j <= i && first + j < n; ++j) {
      float logit = 0.0f;
#pragma unroll
      for (int d = 0; d < DEPTH; ++d) logit = fmaf(mine[d], ks[j][d], logit);
      float higher = fmaxf(top, logit), old = expf(top - higher), power = expf(logit - higher);
      all = all * old + power;
#pragma unroll
      for (int d = 0; d < DEPTH; ++d) sum[d] = sum[d] * old + power * vs[j][d];
      top = higher;
    }
  }
  if (i < n)
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) out[(size_t)i * DEPTH + d] = sum[d] / all;
}
extern "C" void launch_attention(float* out, const float* q, const float* k, const float* v, int n, cudaStream_t stream) {
  ker_attention<<<(n + 1023) / 1024, 1024, 0, stream>>>(out, q, k, v, n);
}
