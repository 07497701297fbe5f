// A warp per query: lanes have keys for the logits, then two columns of the values each.
#include <cuda_runtime.h>

__global__ void ker_attention(float* out, const float* q, const float* k, const float* v, int n) {
  __shared__ float query[4][64];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int i = blockIdx.x * 4 + warp;
  if (i >= n) return;
  query[warp][lane] = q[(size_t)i * 64 + lane] * 0.125f;
  query[warp][lane + 32] = q[(size_t)i * 64 + lane + 32] * 0.125f;
  __syncwarp();
  float m = -INFINITY, s = 0.0f, a = 0.0f, b = 0.0f;
  for (int j0 = 0; j0 <= i; j0 += 32) {
    const int j = j0 + lane;
    float logit = -INFINITY;
    if (j <= i) {
      logit = 0.0f;
      const float4* kj = reinterpret_cast<const float4*>(k + (size_t)j * 64);
      for (int d = 0; d < 16; ++d) {
        const float4 x = kj[d];
        logit += query[warp][4 * d] * x.x + query[warp][4 * d + 1] * x.y + query[warp][4 * d + 2] * x.z + query[warp][4 * d + 3] * x.w;
      }
    }
    float top = logit;
    for (int d = 16; d; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
    if (top < m - 16.6355324f) continue;  // less than half an ulp of the sum
    const float next = fmaxf(m, top), scale = expf(m - next);
    m = next;
    s *= scale, a *= scale, b *= scale;
    if (logit < m - 16.6355324f) logit = -INFINITY;
    const float p = expf(logit - m);
    s += p;
    for (int l = 0; l < min(32, i + 1 - j0); ++l) {
      const float pl = __shfl_sync(0xffffffffu, p, l);
      a += pl * v[(size_t)(j0 + l) * 64 + lane];
      b += pl * v[(size_t)(j0 + l) * 64 + lane + 32];
    }
  }
  for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
  out[(size_t)i * 64 + lane] = a / s;
  out[(size_t)i * 64 + lane + 32] = b / s;
}

extern "C" void launch_attention(float* out, const float* q, const float* k, const float* v, int n,
                                 cudaStream_t stream) {
  ker_attention<<<(n + 3) / 4, 128, 0, stream>>>(out, q, k, v, n);
}
