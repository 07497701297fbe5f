// A thread per pixel, everything from global memory.
#include <cuda_runtime.h>

__global__ void ker(float* out, const float* image, const float* weights, int rows, int columns, int radius) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || column >= columns) return;
  const int taps = 2 * radius + 1;
  float sum = 0.0f;
  for (int i = 0; i < taps; ++i) {
    for (int j = 0; j < taps; ++j) {
      const int y = row + i - radius, x = column + j - radius;
      if (y >= 0 && y < rows && x >= 0 && x < columns)
        sum += weights[i * taps + j] * image[static_cast<size_t>(y) * columns + x];
    }
  }
  out[static_cast<size_t>(row) * columns + column] = sum;
}

extern "C" void launch_convolution(float* out, const float* image, const float* weights, int rows, int columns,
                                   int radius, cudaStream_t stream) {
  const dim3 threads(32, 8), blocks((columns + 31) / 32, (rows + 7) / 8);
  ker<<<blocks, threads, 0, stream>>>(out, image, weights, rows, columns, radius);
}
