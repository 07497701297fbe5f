#include <cuda_runtime.h>

__device__ float cell(const float* u, float rate, int r, int c, int rows, int columns) {
  size_t at = (size_t)r * columns + c;
  float v = u[at];
  if (r == 0 || c == 0 || r == rows - 1 || c == columns - 1) return v;
  return v + rate * (u[at - columns] + u[at + columns] + u[at - 1] + u[at + 1] - 4.0f * v);
}

__device__ unsigned arrived = 0, generation = 0;
__device__ void meet() {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    if (atomicAdd(&arrived, 1u) == gridDim.x - 1) {
      atomicExch(&arrived, 0u);
      __threadfence();
      atomicAdd(&generation, 1u);
    } else {
      unsigned now = *(volatile unsigned*)&generation;
      while (*(volatile unsigned*)&generation == now) {}
    }
    __threadfence();
  }
  __syncthreads();
}
__global__ void ker_stencil(float* after, float* other, const float* before, float rate, int rows, int columns, int steps) {
  int cells = rows * columns;
  for (int step = 0; step < steps; ++step) {
    const float* from = step == 0 ? before : ((steps - step) % 2 ? other : after);
    float* to = (steps - step) % 2 ? after : other;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < cells; i += gridDim.x * blockDim.x)
      to[i] = cell(from, rate, i / columns, i % columns, rows, columns);
    if (step + 1 < steps) meet();
  }
}
extern "C" void launch_stencil(float* after, const float* before, float rate, int rows, int columns, int steps, cudaStream_t stream) {
  float* other;
  cudaMallocAsync((void**)&other, sizeof(float) * rows * columns, stream);
  int each = 1, device = 0, sms = 1;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, ker_stencil, 256, 0);
  int blocks = min(each * sms, (rows * columns + 255) / 256);
  ker_stencil<<<blocks, 256, 0, stream>>>(after, other, before, rate, rows, columns, steps);
  cudaFreeAsync(other, stream);
}
