// Chunks of 64 steps: what each does to a state, the states before each, then the states inside.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int CHUNK = 64;

template <class T>
__global__ void ker_chunks(float2* whole, const T* a, const T* b, int length, int width, int chunks) {
  const int channel = blockIdx.x * blockDim.x + threadIdx.x, chunk = blockIdx.y;
  if (channel >= width) return;
  const size_t sequence = blockIdx.z;
  float factor = 1.0f, value = 0.0f;
  for (int t = chunk * CHUNK; t < min(length, (chunk + 1) * CHUNK); ++t) {
    const size_t at = (sequence * length + t) * width + channel;
    factor *= static_cast<float>(a[at]);
    value = static_cast<float>(a[at]) * value + static_cast<float>(b[at]);
  }
  whole[(sequence * chunks + chunk) * width + channel] = make_float2(factor, value);
}

// Replaces each chunk's pair by the state before it.
__global__ void ker_carries(float2* whole, const float* h0, int batch, int width, int chunks) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= batch * width) return;
  float state = h0 != nullptr ? h0[i] : 0.0f;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    float2& one = whole[(static_cast<size_t>(i / width) * chunks + chunk) * width + i % width];
    const float next = one.x * state + one.y;
    one.x = state;
    state = next;
  }
}

template <class T>
__global__ void ker_states(T* h, const float2* whole, const T* a, const T* b, int length, int width, int chunks) {
  const int channel = blockIdx.x * blockDim.x + threadIdx.x, chunk = blockIdx.y;
  if (channel >= width) return;
  const size_t sequence = blockIdx.z;
  float state = whole[(sequence * chunks + chunk) * width + channel].x;
  for (int t = chunk * CHUNK; t < min(length, (chunk + 1) * CHUNK); ++t) {
    const size_t at = (sequence * length + t) * width + channel;
    state = static_cast<float>(a[at]) * state + static_cast<float>(b[at]);
    h[at] = static_cast<T>(state);
  }
}

template <class T>
static void linear_scan(T* h, const T* a, const T* b, const float* h0, int batch, int length, int width,
                        cudaStream_t stream) {
  const int chunks = (length + CHUNK - 1) / CHUNK;
  const dim3 grid((width + 63) / 64, chunks, batch);
  float2* whole;
  cudaMallocAsync(&whole, sizeof(float2) * batch * chunks * width, stream);
  ker_chunks<<<grid, 64, 0, stream>>>(whole, a, b, length, width, chunks);
  ker_carries<<<(batch * width + 63) / 64, 64, 0, stream>>>(whole, h0, batch, width, chunks);
  ker_states<<<grid, 64, 0, stream>>>(h, whole, a, b, length, width, chunks);
  cudaFreeAsync(whole, stream);
}

#define SCAN(T, NAME)                                                                                             \
  extern "C" void launch_linear_scan_##NAME(T* h, const T* a, const T* b, const float* h0, int batch, int length, \
                                            int width, cudaStream_t stream) {                                     \
    linear_scan(h, a, b, h0, batch, length, width, stream);                                                       \
  }
SCAN(float, float32)
SCAN(__half, float16)
SCAN(__nv_bfloat16, bfloat16)
