// A tile of 16 x 16 in dynamic shared memory, for any radius: tile and filter behind each other.
#include <cuda_runtime.h>

constexpr int EDGE = 16;

__global__ void ker(float* out, const float* image, const float* weights, int rows, int columns, int radius) {
  extern __shared__ float shared[];
  const int pitch = EDGE + 2 * radius, taps = 2 * radius + 1;
  float *tile = shared, *filter = shared + pitch * pitch;
  const int thread = threadIdx.y * EDGE + threadIdx.x;
  for (int y = threadIdx.y; y < pitch; y += EDGE) {
    for (int x = threadIdx.x; x < pitch; x += EDGE) {
      const int row = static_cast<int>(blockIdx.y) * EDGE + y - radius;
      const int column = static_cast<int>(blockIdx.x) * EDGE + x - radius;
      const bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
      tile[y * pitch + x] = inside ? image[static_cast<size_t>(row) * columns + column] : 0.0f;
    }
  }
  for (int i = thread; i < taps * taps; i += EDGE * EDGE) filter[i] = weights[i];
  __syncthreads();
  const int row = blockIdx.y * EDGE + threadIdx.y, column = blockIdx.x * EDGE + threadIdx.x;
  if (row >= rows || column >= columns) return;
  float sum = 0.0f;
  for (int i = 0; i < taps; ++i)
    for (int j = 0; j < taps; ++j)
      sum = fmaf(filter[i * taps + j], tile[(threadIdx.y + i) * pitch + threadIdx.x + j], sum);
  out[static_cast<size_t>(row) * columns + column] = sum;
}

extern "C" void launch_convolution(float* out, const float* image, const float* weights, int rows, int columns,
                                   int radius, cudaStream_t stream) {
  const int pitch = EDGE + 2 * radius, taps = 2 * radius + 1;
  const dim3 blocks((columns + EDGE - 1) / EDGE, (rows + EDGE - 1) / EDGE);
  const size_t bytes = sizeof(float) * (pitch * pitch + taps * taps);
  ker<<<blocks, dim3(EDGE, EDGE), bytes, stream>>>(out, image, weights, rows, columns, radius);
}
