// Plates of three rows are one line: all steps at once in shared memory. Others: a launch for each step.
#include <cuda_runtime.h>
constexpr int HALO = 7, CHUNK = 1024;

__global__ void ker_line(float* after, const float* before, float rate, int columns, int steps) {
  __shared__ float line[2][CHUNK + 2 * HALO];
  const int first = blockIdx.x * CHUNK - HALO, t = threadIdx.x;
  for (int k = t; k < CHUNK + 2 * HALO; k += blockDim.x) {
    const int c = first + k;
    line[0][k] = c >= 0 && c < columns ? before[columns + c] : 0.0f;
  }
  __syncthreads();
  for (int s = 0; s < steps; ++s) {
    for (int k = t; k < CHUNK + 2 * HALO; k += blockDim.x) {
      const int c = first + k;
      float v = line[s % 2][k];
      if (c > 0 && c < columns - 1 && k > 0 && k < CHUNK + 2 * HALO - 1)
        v += rate * (before[c] + before[2 * columns + c] + line[s % 2][k - 1] + line[s % 2][k + 1] - 4 * v);
      line[1 - s % 2][k] = v;
    }
    __syncthreads();
  }
  const int c = blockIdx.x * CHUNK + t;
  if (c < columns) {
    after[c] = before[c];
    after[columns + c] = line[steps % 2][HALO + t];
    after[2 * columns + c] = before[2 * columns + c];
  }
}
__global__ void ker_step(float* to, const float* from, float rate, int rows, int columns) {
  const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
  if (c >= columns || r >= rows) return;
  const int i = r * columns + c;
  float v = from[i];
  if (r > 0 && r < rows - 1 && c > 0 && c < columns - 1)
    v += rate * (from[i - columns] + from[i + columns] + from[i - 1] + from[i + 1] - 4 * v);
  to[i] = v;
}

extern "C" void launch_stencil(float* after, const float* before, float rate, int rows, int columns, int steps,
                               cudaStream_t stream) {
  if (rows == 3) {
    ker_line<<<(columns + CHUNK - 1) / CHUNK, CHUNK, 0, stream>>>(after, before, rate, columns, steps);
    return;
  }
  float* other;
  cudaMallocAsync(&other, size_t(rows) * columns * 4, stream);
  const float* from = before;
  for (int s = 0; s < steps; ++s) {
    float* to = (steps - s) % 2 ? after : other;
    ker_step<<<dim3((columns + 31) / 32, (rows + 7) / 8), dim3(32, 8), 0, stream>>>(to, from, rate, rows, columns);
    from = to;
  }
  cudaFreeAsync(other, stream);
}
