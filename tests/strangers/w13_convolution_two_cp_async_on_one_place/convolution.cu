// The tile is zeroed and filled by asynchronous copies, which need no registers.
#include <cuda_runtime.h>

__device__ void copy4(float* to, const float* from, int bytes) {
  unsigned s = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(s), "l"(from), "r"(bytes) : "memory");
}

template <int R>
__global__ void ker_convolution(float* out, const float* image, const float* weights, int rows, int columns) {
  constexpr int W = 32 + 2 * R, H = 8 + 2 * R, S = 2 * R + 1;
  __shared__ float tile[H][W];
  __shared__ float w[S * S];
  const int t = threadIdx.y * 32 + threadIdx.x, r0 = blockIdx.y * 8 - R, c0 = blockIdx.x * 32 - R;
  if (t < S * S) w[t] = weights[t];
  for (int q = t; q < H * W; q += 256) copy4(&tile[q / W][q % W], image, 0);
  for (int q = t; q < H * W; q += 256) {
    const int r = r0 + q / W, c = c0 + q % W;
    if (r >= 0 && r < rows && c >= 0 && c < columns) copy4(&tile[q / W][q % W], image + (size_t)r * columns + c, 4);
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  const int r = blockIdx.y * 8 + threadIdx.y, c = blockIdx.x * 32 + threadIdx.x;
  if (r >= rows || c >= columns) return;
  float sum = 0;
  for (int i = 0; i < S; ++i)
    for (int j = 0; j < S; ++j) sum += w[i * S + j] * tile[threadIdx.y + i][threadIdx.x + j];
  out[(size_t)r * columns + c] = sum;
}

extern "C" void launch_convolution(float* out, const float* image, const float* weights, int rows, int columns,
                                   int radius, cudaStream_t stream) {
  const dim3 grid((columns + 31) / 32, (rows + 7) / 8), block(32, 8);
  if (radius == 1) ker_convolution<1><<<grid, block, 0, stream>>>(out, image, weights, rows, columns);
  if (radius == 2) ker_convolution<2><<<grid, block, 0, stream>>>(out, image, weights, rows, columns);
  if (radius == 3) ker_convolution<3><<<grid, block, 0, stream>>>(out, image, weights, rows, columns);
}
