// 2-D convolution: a tile with its halo in shared memory, a strip of pixels in each thread's registers.
//
// Idea: a pixel of the tile is needed by (2 radius + 1)^2 outputs. A thread computes STRIP outputs below each
// other, so that it loads a pixel once for all of them in its column: 22 x 7 loads for 16 x 49 products with radius
// 3. The radius is a template parameter, so that loops are unrolled and sums stay in registers.
//
// Bytes: 4 read and 4 written per pixel, and the halo, which the L2 cache has mostly.
//
// Launch: a block of 64 x 4 threads for a tile of 64 x 64 outputs.
#include <cuda_runtime.h>

constexpr int WIDTH = 64, LINES = 4;  // of a block's threads
constexpr int STRIP = 16;  // outputs of a thread
constexpr int HEIGHT = LINES * STRIP;

template <int RADIUS>
__global__ void __launch_bounds__(WIDTH* LINES, 2)
    ker_convolution(float* out, const float* image, const float* weights, int rows, int columns) {
  constexpr int TAPS = 2 * RADIUS + 1, PITCH = WIDTH + 2 * RADIUS, THREADS = WIDTH * LINES;
  __shared__ float tile[HEIGHT + 2 * RADIUS][PITCH];
  __shared__ float filter[TAPS][TAPS];
  const int x = threadIdx.x, thread = threadIdx.y * WIDTH + x;
  const int left = blockIdx.x * WIDTH - RADIUS, top = blockIdx.y * HEIGHT - RADIUS;
  for (int i = thread; i < (HEIGHT + 2 * RADIUS) * PITCH; i += THREADS) {
    const int row = top + i / PITCH, column = left + i % PITCH;
    const bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
    tile[i / PITCH][i % PITCH] = inside ? image[static_cast<size_t>(row) * columns + column] : 0.0f;
  }
  if (thread < TAPS * TAPS) filter[thread / TAPS][thread % TAPS] = weights[thread];
  __syncthreads();

  const int first = threadIdx.y * STRIP;
  float sum[STRIP] = {};
#pragma unroll
  for (int j = 0; j < TAPS; ++j) {
    float weight[TAPS];  // of one column of the filter
#pragma unroll
    for (int i = 0; i < TAPS; ++i) weight[i] = filter[i][j];
#pragma unroll
    for (int y = 0; y < STRIP + 2 * RADIUS; ++y) {
      const float pixel = tile[first + y][x + j];
#pragma unroll
      for (int i = 0; i < TAPS; ++i)
        if (y >= i && y - i < STRIP) sum[y - i] = fmaf(weight[i], pixel, sum[y - i]);
    }
  }

  const int column = blockIdx.x * WIDTH + x;
#pragma unroll
  for (int s = 0; s < STRIP; ++s) {
    const int row = blockIdx.y * HEIGHT + first + s;
    if (row < rows && column < columns) out[static_cast<size_t>(row) * columns + column] = sum[s];
  }
}

extern "C" void launch_convolution(float* out, const float* image, const float* weights, int rows, int columns,
                                   int radius, cudaStream_t stream) {
  const dim3 blocks((columns + WIDTH - 1) / WIDTH, (rows + HEIGHT - 1) / HEIGHT), threads(WIDTH, LINES);
  switch (radius) {
    case 1: ker_convolution<1><<<blocks, threads, 0, stream>>>(out, image, weights, rows, columns); break;
    case 2: ker_convolution<2><<<blocks, threads, 0, stream>>>(out, image, weights, rows, columns); break;
    default: ker_convolution<3><<<blocks, threads, 0, stream>>>(out, image, weights, rows, columns); break;
  }
}
