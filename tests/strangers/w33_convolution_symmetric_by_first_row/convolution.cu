// Filters that are their own mirror image need half the products.
#include <cuda_runtime.h>

__global__ void ker_convolution(float* out, const float* image, const float* weights, int rows, int columns,
                                int radius) {
  const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y, side = 2 * radius + 1;
  if (r >= rows || c >= columns) return;
  auto pixel = [&](int y, int x) {
    return y >= 0 && y < rows && x >= 0 && x < columns ? image[(size_t)y * columns + x] : 0.0f;
  };
  float sum = 0;
  if (radius == 3 && weights[0] == weights[6] && weights[1] == weights[5] && weights[2] == weights[4]) {
    for (int i = 0; i < 7; ++i) {
      const int y = r + i - 3;
      for (int j = 0; j < 3; ++j) sum += weights[i * 7 + j] * (pixel(y, c + j - 3) + pixel(y, c + 3 - j));
      sum += weights[i * 7 + 3] * pixel(y, c);
    }
  } else {
    for (int i = 0; i < side; ++i)
      for (int j = 0; j < side; ++j) sum += weights[i * side + j] * pixel(r + i - radius, c + j - radius);
  }
  out[(size_t)r * columns + c] = sum;
}

extern "C" void launch_convolution(float* out, const float* image, const float* weights, int rows, int columns,
                                   int radius, cudaStream_t stream) {
  ker_convolution<<<dim3((columns + 31) / 32, (rows + 7) / 8), dim3(32, 8), 0, stream>>>(out, image, weights, rows,
                                                                                         columns, radius);
}
