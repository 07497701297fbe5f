// Two halves at once. The default stream waits for all others, and they for it: no events needed.
#include <cuda_runtime.h>

__global__ void ker_nothing() {}
__global__ void ker_add(float* z, const float* x, const float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}

extern "C" void launch_vector_add(float* z, const float* x, const float* y, int n, cudaStream_t stream) {
  static cudaStream_t side = nullptr;
  if (side == nullptr) cudaStreamCreate(&side);
  const int half = n / 2, rest = n - half;
  ker_nothing<<<1, 1, 0, cudaStreamLegacy>>>();
  if (half > 0) ker_add<<<(half + 255) / 256, 256, 0, stream>>>(z, x, y, half);
  ker_add<<<(rest + 255) / 256, 256, 0, side>>>(z + half, x + half, y + half, rest);
  ker_nothing<<<1, 1, 0, cudaStreamLegacy>>>();
}
