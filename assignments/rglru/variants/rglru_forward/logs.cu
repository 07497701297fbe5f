// The product of factors is the exponential of a sum of their logarithms: chunks of 32 steps, a warp per channel.
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
  const int n = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (n >= batch * width) return;
  const int sequence = n / width, channel = n % width;
  float carry = h0 != nullptr ? h0[n] : 0.0f;
  for (int first = 0; first < length; first += 32) {
    const int t = first + lane;
    const size_t at = (static_cast<size_t>(sequence) * length + t) * width + channel;
    float decay = 0.0f, value = 0.0f;
    if (t < length) {
      const Gate g = gate(static_cast<float>(gx[at]), static_cast<float>(ga[at]), c[channel]);
      decay = g.d;
      value = g.s * (g.i * static_cast<float>(x[at]));
    }
    for (int offset = 1; offset < 32; offset *= 2) {
      const float d = __shfl_up_sync(0xffffffff, decay, offset), v = __shfl_up_sync(0xffffffff, value, offset);
      if (lane >= offset) {
        value += expf(-decay) * v;
        decay += d;
      }
    }
    value += expf(-decay) * carry;
    if (t < length) h[at] = static_cast<T>(value);
    carry = __shfl_sync(0xffffffff, value, 31);
  }
}

template <class T>
static void forward(T* h, const T* x, const T* gx, const T* ga, const float* c, const float* h0, int batch, int length,
                    int width, cudaStream_t stream) {
  ker_rglru<<<(batch * width + 3) / 4, 128, 0, stream>>>(h, x, gx, ga, c, h0, batch, length, width);
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
