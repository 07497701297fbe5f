// Causal attention: a warp per query, 32 keys at a time; tiles whose powers vanish beside the largest are left out.
#include <cuda_runtime.h>
#include <math_constants.h>

constexpr int DEPTH = 64, VANISHES = 14;

__global__ void ker_attention(float* out, const float* q, const float* k, const float* v, int n) {
  __shared__ float query[4][DEPTH];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, i = blockIdx.x * 4 + warp;
  if (i >= n) return;
  query[warp][lane] = q[i * DEPTH + lane] * 0.125f;
  query[warp][lane + 32] = q[i * DEPTH + lane + 32] * 0.125f;
  __syncwarp();
  float largest = -CUDART_INF_F, sum = 0, first = 0, second = 0;
  for (int j0 = 0; j0 <= i; j0 += 32) {
    const int j = j0 + lane;
    float logit = -CUDART_INF_F;
    if (j <= i) {
      logit = 0;
      for (int d = 0; d < DEPTH; d += 4) {
        const float4 key = *reinterpret_cast<const float4*>(k + j * DEPTH + d);
        logit += query[warp][d] * key.x + query[warp][d + 1] * key.y + query[warp][d + 2] * key.z + query[warp][d + 3] * key.w;
      }
    }
    float top = logit;
    for (int offset = 16; offset > 0; offset /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, offset));
    if (top < largest - VANISHES) continue;
    if (top > largest) {
      const float factor = __expf(largest - top);
      sum *= factor, first *= factor, second *= factor;
      largest = top;
    }
    const float power = __expf(logit - largest);
    sum += power;
    const int keys = min(32, i + 1 - j0);
    for (int l = 0; l < keys; ++l) {
      const float p = __shfl_sync(0xffffffff, power, l);
      first += p * v[(j0 + l) * DEPTH + lane];
      second += p * v[(j0 + l) * DEPTH + lane + 32];
    }
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  out[i * DEPTH + lane] = first / sum;
  out[i * DEPTH + lane + 32] = second / sum;
}

extern "C" void launch_attention(float* out, const float* q, const float* k, const float* v, int n,
                                 cudaStream_t stream) {
  ker_attention<<<(n + 3) / 4, 128, 0, stream>>>(out, q, k, v, n);
}
