// All steps in one launch; blocks meet at a barrier of their own after each step. At most 64 blocks, all resident.
#include <cuda_runtime.h>

struct Sync { unsigned arrived, generation, stop; };

__device__ void meet(Sync* s, unsigned blocks) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    if (atomicAdd(&s->arrived, 1u) == blocks - 1) {
      atomicExch(&s->arrived, 0u);
      __threadfence();
      atomicAdd(&s->generation, 1u);
    } else {
      const unsigned now = atomicAdd(&s->generation, 0u);
      while (atomicAdd(&s->generation, 0u) == now) __nanosleep(50);
    }
    __threadfence();
  }
  __syncthreads();
}

__global__ void ker_stencil(float* after, float* other, const float* before, Sync* s, float rate, int rows, int columns,
                            int steps) {
  const float* from = before;
  const long long all = (long long)rows * columns;
  for (int step = 0; step < steps; ++step) {
    float* to = (steps - 1 - step) % 2 ? other : after;
    for (long long i = blockIdx.x * 256 + threadIdx.x; i < all; i += gridDim.x * 256) {
      const int r = (int)(i / columns), c = (int)(i % columns);
      float u = __ldcg(from + i);
      if (r > 0 && r < rows - 1 && c > 0 && c < columns - 1)
        u += rate * (__ldcg(from + i - columns) + __ldcg(from + i + columns) + __ldcg(from + i - 1) + __ldcg(from + i + 1) - 4.0f * u);
      to[i] = u;
    }
    for (int k = 0; k < 3; ++k)
      if (*(volatile unsigned*)&s->stop) return;  // the host may ask to stop
    from = to;
    if (step + 1 < steps) meet(s, gridDim.x);
  }
}

extern "C" void launch_stencil(float* after, const float* before, float rate, int rows, int columns, int steps,
                               cudaStream_t stream) {
  float* other;
  Sync* s;
  const long long all = (long long)rows * columns;
  cudaMallocAsync(&other, all * sizeof(float), stream);
  cudaMallocAsync(&s, sizeof(Sync), stream);
  cudaMemsetAsync(s, 0, sizeof(Sync), stream);
  ker_stencil<<<(int)min((all + 255) / 256, 64ll), 256, 0, stream>>>(after, other, before, s, rate, rows, columns, steps);
  cudaFreeAsync(other, stream);
  cudaFreeAsync(s, stream);
}
