#include <cuda_runtime.h>

__global__ void ker_attention(float4* out, const float4* q, const float4* k, const float4* v, int n) {
  const int i = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32, half = lane / 16, d = lane % 16;
  if (i >= n) return;  // whole warps
  const unsigned mask = half ? 0xffff0000u : 0x0000ffffu;
  const float4 mine = q[(size_t)i * 16 + d];
  float most = -INFINITY, sum = 0;
  float4 o = make_float4(0, 0, 0, 0);
  for (int j = half; j <= i; j += 2) {
    const float4 key = k[(size_t)j * 16 + d];
    float s = mine.x * key.x + mine.y * key.y + mine.z * key.z + mine.w * key.w;
    for (int e = 8; e > 0; e /= 2) s += __shfl_xor_sync(mask, s, e, 16);
    s *= 0.125f;
    const float now = fmaxf(most, s), scale = __expf(most - now), p = __expf(s - now);
    const float4 w = v[(size_t)j * 16 + d];
    sum = sum * scale + p;
    o.x = o.x * scale + p * w.x;
    o.y = o.y * scale + p * w.y;
    o.z = o.z * scale + p * w.z;
    o.w = o.w * scale + p * w.w;
    most = now;
  }
  __syncwarp();
  const float theirs = __shfl_xor_sync(0xffffffffu, most, 16), all = fmaxf(most, theirs);
  const float scale = __expf(most - all);
  sum *= scale, o.x *= scale, o.y *= scale, o.z *= scale, o.w *= scale;
  sum += __shfl_xor_sync(0xffffffffu, sum, 16);
  o.x += __shfl_xor_sync(0xffffffffu, o.x, 16);
  o.y += __shfl_xor_sync(0xffffffffu, o.y, 16);
  o.z += __shfl_xor_sync(0xffffffffu, o.z, 16);
  o.w += __shfl_xor_sync(0xffffffffu, o.w, 16);
  if (half == 0) out[(size_t)i * 16 + d] = make_float4(o.x / sum, o.y / sum, o.z / sum, o.w / sum);
}

extern "C" void launch_attention(float* out, const float* q, const float* k, const float* v, int n,
                                 cudaStream_t stream) {
  ker_attention<<<(n + 3) / 4, 128, 0, stream>>>(reinterpret_cast<float4*>(out), reinterpret_cast<const float4*>(q),
                                                 reinterpret_cast<const float4*>(k),
                                                 reinterpret_cast<const float4*>(v), n);
}
