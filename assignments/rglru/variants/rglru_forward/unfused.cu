// Gates first, into float32 scratch memory; then a scan of them, a warp per channel.
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
__global__ void ker_gates(float2* steps, const T* x, const T* gx, const T* ga, const float* c, size_t count,
                          int width) {
  for (size_t at = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; at < count;
       at += static_cast<size_t>(gridDim.x) * blockDim.x) {
    const Gate g = gate(static_cast<float>(gx[at]), static_cast<float>(ga[at]), c[at % width]);
    steps[at] = make_float2(g.a, g.s * g.i * static_cast<float>(x[at]));
  }
}

template <class T>
__global__ void ker_scan(T* h, const float2* steps, const float* h0, int batch, int length, int width) {
  const int n = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (n >= batch * width) return;
  float carry = h0 != nullptr ? h0[n] : 0.0f;
  for (int first = 0; first < length; first += 32) {
    const int t = first + lane;
    const size_t at = (static_cast<size_t>(n / width) * length + t) * width + n % width;
    float2 step = t < length ? steps[at] : make_float2(1.0f, 0.0f);
    for (int offset = 1; offset < 32; offset *= 2) {
      const float f = __shfl_up_sync(0xffffffff, step.x, offset), v = __shfl_up_sync(0xffffffff, step.y, offset);
      if (lane >= offset) {
        step.y += step.x * v;
        step.x *= f;
      }
    }
    step.y += step.x * carry;
    if (t < length) h[at] = static_cast<T>(step.y);
    carry = __shfl_sync(0xffffffff, step.y, 31);
  }
}

template <class T>
static void forward(T* h, const T* x, const T* gx, const T* ga, const float* c, const float* h0, int batch, int length,
                    int width, cudaStream_t stream) {
  const size_t count = static_cast<size_t>(batch) * length * width;
  float2* steps;
  cudaMallocAsync(&steps, sizeof(float2) * count, stream);
  const unsigned blocks = count < 1024 * 128 ? static_cast<unsigned>((count + 127) / 128) : 1024;
  ker_gates<<<blocks, 128, 0, stream>>>(steps, x, gx, ga, c, count, width);
  ker_scan<<<(batch * width + 3) / 4, 128, 0, stream>>>(h, steps, h0, batch, length, width);
  cudaFreeAsync(steps, stream);
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
