// The states are computed again in float32, into scratch memory; a thread per channel, which does all sequences.
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
                             const T* ga, const float* c, const float* h0, float* scratch, int batch, int length,
                             int width) {
  const int channel = blockIdx.x * blockDim.x + threadIdx.x;
  if (channel >= width) return;
  float sum = 0.0f;
  for (int sequence = 0; sequence < batch; ++sequence) {
    const size_t start = static_cast<size_t>(sequence) * length * width + channel;
    float state = h0 != nullptr ? h0[sequence * width + channel] : 0.0f;
    for (int t = 0; t < length; ++t) {
      const size_t at = start + static_cast<size_t>(t) * width;
      const Gate g = gate(static_cast<float>(gx[at]), static_cast<float>(ga[at]), c[channel]);
      scratch[at] = state;  // before the step
      state = g.a * state + g.s * (g.i * static_cast<float>(x[at]));
    }
    float later = 0.0f;
    for (int t = length - 1; t >= 0; --t) {
      const size_t at = start + static_cast<size_t>(t) * width;
      const Gate g = gate(static_cast<float>(gx[at]), static_cast<float>(ga[at]), c[channel]);
      const float before = scratch[at];
      const float input = static_cast<float>(x[at]), whole = static_cast<float>(dh[at]) + later;
      const float share = g.s > 0.0f ? g.d / g.s : 0.0f;
      const float q = whole * (g.d * g.a * before - g.i * input * g.a * g.a * share);
      dx[at] = static_cast<T>(whole * g.s * g.i);
      dgx[at] = static_cast<T>(whole * g.s * input * g.i * (1.0f - g.i));
      dga[at] = static_cast<T>(-(1.0f - g.r) * q);
      later = g.a * whole;
      sum += q;
    }
    dh0[sequence * width + channel] = later;
  }
  dc[channel] = -sum * (1.0f / (1.0f + expf(-c[channel]))) / log1pf(expf(c[channel]));
}

template <class T>
static void backward(T* dx, T* dgx, T* dga, float* dc, float* dh0, const T* dh, const T* x, const T* gx, const T* ga,
                     const float* c, const T*, const float* h0, int batch, int length, int width, cudaStream_t stream) {
  float* scratch;
  cudaMallocAsync(&scratch, sizeof(float) * batch * length * width, stream);
  ker_rglru_bw<<<(width + 31) / 32, 32, 0, stream>>>(dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h0, scratch, batch,
                                                     length, width);
  cudaFreeAsync(scratch, stream);
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
