// A thread per channel walks along time.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <class T>
__global__ void ker_scan(T* h, const T* a, const T* b, const float* h0, int batch, int length, int width) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= batch * width) return;
  const int sequence = i / width, channel = i % width;
  float state = h0 != nullptr ? h0[i] : 0.0f;
  for (int t = 0; t < length; ++t) {
    const size_t at = (static_cast<size_t>(sequence) * length + t) * width + channel;
    state = static_cast<float>(a[at]) * state + static_cast<float>(b[at]);
    h[at] = static_cast<T>(state);
  }
}

template <class T>
static void linear_scan(T* h, const T* a, const T* b, const float* h0, int batch, int length, int width,
                        cudaStream_t stream) {
  ker_scan<<<(batch * width + 63) / 64, 64, 0, stream>>>(h, a, b, h0, batch, length, width);
}

#define SCAN(T, NAME)                                                                                             \
  extern "C" void launch_linear_scan_##NAME(T* h, const T* a, const T* b, const float* h0, int batch, int length, \
                                            int width, cudaStream_t stream) {                                     \
    linear_scan(h, a, b, h0, batch, length, width, stream);                                                       \
  }
SCAN(float, float32)
SCAN(__half, float16)
SCAN(__nv_bfloat16, bfloat16)
