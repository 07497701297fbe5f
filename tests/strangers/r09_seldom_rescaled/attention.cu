#include <cuda_runtime.h>

// A warp per query; a lane has two of the 64 numbers. One key after the other.
__global__ void ker_attention(float* out, const float* q, const float* k, const float* v, int n) {
  const int i = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (i >= n) return;
  const float2 query = reinterpret_cast<const float2*>(q)[(size_t)i * 32 + lane];
  float reference = 0.0f, s = 0.0f;
  float2 sum = make_float2(0.0f, 0.0f);
  for (int j = 0; j <= i; ++j) {
    const float2 key = reinterpret_cast<const float2*>(k)[(size_t)j * 32 + lane];
    float logit = query.x * key.x + query.y * key.y;
    for (int d = 16; d; d /= 2) logit += __shfl_xor_sync(0xffffffffu, logit, d);
    logit *= 0.125f;
    if (j == 0) reference = logit;
    if (logit > reference + 8.0f) {
      const float f = __expf(reference - logit);
      s *= f, sum.x *= f, sum.y *= f;
      reference = logit;
    }
    const float p = __expf(logit - reference);
    const float2 value = reinterpret_cast<const float2*>(v)[(size_t)j * 32 + lane];
    s += p;
    sum.x += p * value.x;
    sum.y += p * value.y;
  }
  reinterpret_cast<float2*>(out)[(size_t)i * 32 + lane] = make_float2(sum.x / s, sum.y / s);
}

extern "C" void launch_attention(float* out, const float* q, const float* k, const float* v, int n,
                                 cudaStream_t stream) {
  ker_attention<<<(n + 7) / 8, 256, 0, stream>>>(out, q, k, v, n);
}
