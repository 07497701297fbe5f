// A warp goes down a strip of the image: each lane holds a pixel of the row that has come, neighbours come by shuffles,
// and the sums of the rows that still wait for it stay in registers, in a ring.
#include <cuda_runtime.h>

constexpr int ROWS = 32;  // of a strip

template <int RADIUS>
__global__ void ker(float* out, const float* image, const float* weights, int rows, int columns) {
  constexpr int TAPS = 2 * RADIUS + 1, WIDTH = 32 - 2 * RADIUS;
  const int lane = threadIdx.x, column = static_cast<int>(blockIdx.x) * WIDTH + lane - RADIUS;
  const int begin = (blockIdx.y * blockDim.y + threadIdx.y) * ROWS, end = min(begin + ROWS, rows);
  float sums[TAPS] = {};  // sums[i]: of the output row that lies RADIUS - i rows above the row that has come
  for (int row = begin - RADIUS; row < end + RADIUS; ++row) {
    const bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
    const float pixel = inside ? __ldg(image + static_cast<size_t>(row) * columns + column) : 0.0f;
#pragma unroll
    for (int j = 0; j < TAPS; ++j) {
      const float shifted = __shfl_sync(0xffffffff, pixel, lane + j - RADIUS);
#pragma unroll
      for (int i = 0; i < TAPS; ++i) sums[i] += __ldg(weights + (TAPS - 1 - i) * TAPS + j) * shifted;
    }
    const int done = row - RADIUS;
    if (done >= begin && done < end && lane >= RADIUS && lane < 32 - RADIUS && column < columns)
      out[static_cast<size_t>(done) * columns + column] = sums[0];
#pragma unroll
    for (int i = 0; i + 1 < TAPS; ++i) sums[i] = sums[i + 1];
    sums[TAPS - 1] = 0.0f;
  }
}

template <int RADIUS>
static void launch(float* out, const float* image, const float* weights, int rows, int columns, cudaStream_t stream) {
  constexpr int WIDTH = 32 - 2 * RADIUS;
  const dim3 threads(32, 4), blocks((columns + WIDTH - 1) / WIDTH, (rows + 4 * ROWS - 1) / (4 * ROWS));
  ker<RADIUS><<<blocks, threads, 0, stream>>>(out, image, weights, rows, columns);
}

extern "C" void launch_convolution(float* out, const float* image, const float* weights, int rows, int columns,
                                   int radius, cudaStream_t stream) {
  if (radius == 1) launch<1>(out, image, weights, rows, columns, stream);
  if (radius == 2) launch<2>(out, image, weights, rows, columns, stream);
  if (radius == 3) launch<3>(out, image, weights, rows, columns, stream);
}
