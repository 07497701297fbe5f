// A thread per channel walks back along time; dC by atomic additions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

struct Gate {
  float i, r, d, a, s;
};

__device__ inline Gate gate(float gx, float ga, float c) {
  Gate g;
  g.i = 1.0f / (1.0f + expf(-gx));
  g.r = 1.0f / (1.0f + expf(-ga));
  g.d = 8.0f * g.r * (c > 20.0f ? c : log1pf(expf(c)));
  g.a = expf(-g.d);
  g.s = sqrtf(-expm1f(-2.0f * g.d));
  return g;
}

template <class T>
__global__ void ker_rglru_bw(T* dx, T* dgx, T* dga, float* dc, float* dh0, const T* dh, const T* x, const T* gx,
                             const T* ga, const float* c, const T* h, const float* h0, int batch, int length,
                             int width) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= batch * width) return;
  const int sequence = n / width, channel = n % width;
  float later = 0.0f, sum = 0.0f;
  for (int t = length - 1; t >= 0; --t) {
    const size_t at = (static_cast<size_t>(sequence) * length + t) * width + channel;
    const Gate g = gate(static_cast<float>(gx[at]), static_cast<float>(ga[at]), c[channel]);
    const float start = h0 != nullptr ? h0[n] : 0.0f;
    const float before = t > 0 ? static_cast<float>(h[at - width]) : start;
    const float input = static_cast<float>(x[at]), whole = static_cast<float>(dh[at]) + later;
    const float share = g.s > 0.0f ? g.d / g.s : 0.0f;
    const float q = whole * (g.d * g.a * before - g.i * input * g.a * g.a * share);
    dx[at] = static_cast<T>(whole * g.s * g.i);
    dgx[at] = static_cast<T>(whole * g.s * input * g.i * (1.0f - g.i));
    dga[at] = static_cast<T>(-(1.0f - g.r) * q);
    later = g.a * whole;
    sum += q;
  }
  dh0[n] = later;
  atomicAdd(dc + channel, -sum * (1.0f / (1.0f + expf(-c[channel]))) / log1pf(expf(c[channel])));
}

template <class T>
static void backward(T* dx, T* dgx, T* dga, float* dc, float* dh0, const T* dh, const T* x, const T* gx, const T* ga,
                     const float* c, const T* h, const float* h0, int batch, int length, int width,
                     cudaStream_t stream) {
  cudaMemsetAsync(dc, 0, sizeof(float) * width, stream);
  ker_rglru_bw<<<(batch * width + 63) / 64, 64, 0, stream>>>(dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, h0, batch,
                                                             length, width);
}

#define BACKWARD(T, NAME)                                                                                             \
  extern "C" void launch_rglru_backward_##NAME(T* dx, T* dgx, T* dga, float* dc, float* dh0, const T* dh, const T* x, \
                                               const T* gx, const T* ga, const float* c, const T* h, const float* h0, \
                                               int batch, int length, int width, cudaStream_t stream) {               \
    backward(dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, h0, batch, length, width, stream);                           \
  }
BACKWARD(float, float32)
BACKWARD(__half, float16)
BACKWARD(__nv_bfloat16, bfloat16)
