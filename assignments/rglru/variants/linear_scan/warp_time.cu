// A warp per channel: its lanes are 32 steps of time, combined by shuffles.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <class T>
__global__ void ker_scan(T* h, const T* a, const T* b, const float* h0, int batch, int length, int width) {
  const int i = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (i >= batch * width) return;
  const int sequence = i / width, channel = i % width;
  float carry = h0 != nullptr ? h0[i] : 0.0f;
  for (int first = 0; first < length; first += 32) {
    const int t = first + lane;
    const size_t at = (static_cast<size_t>(sequence) * length + t) * width + channel;
    float factor = t < length ? static_cast<float>(a[at]) : 1.0f;
    float value = t < length ? static_cast<float>(b[at]) : 0.0f;
    for (int offset = 1; offset < 32; offset *= 2) {
      const float f = __shfl_up_sync(0xffffffff, factor, offset), v = __shfl_up_sync(0xffffffff, value, offset);
      if (lane >= offset) {
        value += factor * v;
        factor *= f;
      }
    }
    value += factor * carry;
    if (t < length) h[at] = static_cast<T>(value);
    carry = __shfl_sync(0xffffffff, value, 31);
  }
}

template <class T>
static void linear_scan(T* h, const T* a, const T* b, const float* h0, int batch, int length, int width,
                        cudaStream_t stream) {
  ker_scan<<<(batch * width + 3) / 4, 128, 0, stream>>>(h, a, b, h0, batch, length, width);
}

#define SCAN(T, NAME)                                                                                             \
  extern "C" void launch_linear_scan_##NAME(T* h, const T* a, const T* b, const float* h0, int batch, int length, \
                                            int width, cudaStream_t stream) {                                     \
    linear_scan(h, a, b, h0, batch, length, width, stream);                                                       \
  }
SCAN(float, float32)
SCAN(__half, float16)
SCAN(__nv_bfloat16, bfloat16)
