// Causal attention: a warp per query. Powers of two throughout; the reference is a whole number, so rescaling is exact.
#include <cuda_runtime.h>
#include <math_constants.h>

constexpr int DEPTH = 64;
constexpr float LOG2E = 1.44269504088896340736f;

__global__ void ker_attention(float* out, const float* q, const float* k, const float* v, int n) {
  __shared__ float query[4][DEPTH];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, i = blockIdx.x * 4 + warp;
  if (i >= n) return;
  for (int d = lane; d < DEPTH; d += 32) query[warp][d] = q[i * DEPTH + d] * 0.125f;
  __syncwarp();
  float reference = -CUDART_INF_F, sum = 0, first = 0, second = 0;
  for (int j0 = 0; j0 <= i; j0 += 32) {
    const int j = j0 + lane;
    float logit = -CUDART_INF_F;
    if (j <= i) {
      logit = 0;
      for (int d = 0; d < DEPTH; ++d) logit = fmaf(query[warp][d], k[j * DEPTH + d], logit);
    }
    float top = logit;
    for (int offset = 16; offset > 0; offset /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, offset));
    const float whole = ceilf(top * LOG2E);
    if (whole > reference) {
      const float factor = exp2f(reference - whole);
      sum *= factor;
      first *= factor;
      second *= factor;
      reference = whole;
    }
    const float power = j <= i ? exp2f(fmaf(logit, LOG2E, -reference)) : 0.0f;
    sum += power;
    for (int l = 0; l < 32 && j0 + l <= i; ++l) {
      const float p = __shfl_sync(0xffffffff, power, l);
      first = fmaf(p, v[(j0 + l) * DEPTH + lane], first);
      second = fmaf(p, v[(j0 + l) * DEPTH + lane + 32], second);
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
