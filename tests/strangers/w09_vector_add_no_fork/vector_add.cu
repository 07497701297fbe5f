// Vector addition: two halves side by side on two streams.
#include <cuda_runtime.h>

__global__ void ker_vector_add(float* z, const float* x, const float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}

static cudaStream_t other_stream() {
  static cudaStream_t other = [] {
    cudaStream_t made;
    cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    return made;
  }();
  return other;
}

static cudaEvent_t done_event() {
  static cudaEvent_t done = [] {
    cudaEvent_t made;
    cudaEventCreateWithFlags(&made, cudaEventDisableTiming);
    return made;
  }();
  return done;
}

extern "C" void launch_vector_add(float* z, const float* x, const float* y, int n, cudaStream_t stream) {
  const int half = n / 2, rest = n - half;
  cudaStream_t other = other_stream();
  ker_vector_add<<<(rest + 255) / 256, 256, 0, other>>>(z + half, x + half, y + half, rest);
  cudaEventRecord(done_event(), other);
  if (half > 0) ker_vector_add<<<(half + 255) / 256, 256, 0, stream>>>(z, x, y, half);
  cudaStreamWaitEvent(stream, done_event(), 0);
}
