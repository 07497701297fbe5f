// A thread per channel walks along time.
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
__global__ void ker_rglru(T* h, const T* x, const T* gx, const T* ga, const float* c, const float* h0, int batch,
                          int length, int width) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= batch * width) return;
  const int sequence = n / width, channel = n % width;
  float state = h0 != nullptr ? h0[n] : 0.0f;
  for (int t = 0; t < length; ++t) {
    const size_t at = (static_cast<size_t>(sequence) * length + t) * width + channel;
    const Gate g = gate(static_cast<float>(gx[at]), static_cast<float>(ga[at]), c[channel]);
    state = g.a * state + g.s * (g.i * static_cast<float>(x[at]));
    h[at] = static_cast<T>(state);
  }
}

template <class T>
static void forward(T* h, const T* x, const T* gx, const T* ga, const float* c, const float* h0, int batch, int length,
                    int width, cudaStream_t stream) {
  ker_rglru<<<(batch * width + 63) / 64, 64, 0, stream>>>(h, x, gx, ga, c, h0, batch, length, width);
}

#define FORWARD(T, NAME)                                                                                  \
  extern "C" void launch_rglru_forward_##NAME(T* h, const T* x, const T* gx, const T* ga, const float* c, \
                                              const float* h0, int batch, int length, int width,          \
                                              cudaStream_t stream) {                                      \
    forward(h, x, gx, ga, c, h0, batch, length, width, stream);                                           \
  }
FORWARD(float, float32)
FORWARD(__half, float16)
FORWARD(__nv_bfloat16, bfloat16)
