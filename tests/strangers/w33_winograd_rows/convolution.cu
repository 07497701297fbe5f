// Radius 1: two outputs from four pixels with four products instead of six (Winograd F(2,3)).
#include <cuda_runtime.h>

__device__ inline float block_sum(float v) {   // the sum in all threads
  __shared__ float part[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  __syncthreads();
  if (lane == 0) part[warp] = v;
  __syncthreads();
  v = lane < (blockDim.x + 31) / 32 ? part[lane] : 0.0f;
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

__global__ void ker_direct(float* out, const float* image, const float* weights, int rows, int columns, int radius) {
  const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y, side = 2 * radius + 1;
  if (c >= columns || r >= rows) return;
  float sum = 0.0f;
  for (int i = 0; i < side; ++i)
    for (int j = 0; j < side; ++j) {
      const int y = r + i - radius, x = c + j - radius;
      if (y >= 0 && y < rows && x >= 0 && x < columns) sum += weights[i * side + j] * image[(size_t)y * columns + x];
    }
  out[(size_t)r * columns + c] = sum;
}

__global__ void ker_winograd(float* out, const float* image, const float* w, int rows, int columns) {
  __shared__ float tile[10][66];
  const int t = threadIdx.x, r0 = blockIdx.y * 8 - 1, c0 = blockIdx.x * 64 - 1;
  float sum = 0.0f;
  for (int k = t; k < 660; k += 256) {
    const int r = r0 + k / 66, c = c0 + k % 66;
    const float v = r >= 0 && r < rows && c >= 0 && c < columns ? image[(size_t)r * columns + c] : 0.0f;
    tile[k / 66][k % 66] = v;
    sum += fabsf(v);
  }
  const float mean = block_sum(sum) / 660.0f;
  float largest = 0.0f, sizes = 0.0f;
  for (int k = 0; k < 9; ++k) largest = fmaxf(largest, fabsf(w[k])), sizes += fabsf(w[k]);
  // Numbers of one kind, none outside of the image.
  bool even = mean > 1e-15f && sizes > 1e-15f && 9.0f * largest < 4.0f * sizes;
  even &= r0 >= 0 && c0 >= 0 && r0 + 10 <= rows && c0 + 66 <= columns;
  for (int k = t; k < 660; k += 256) even &= fabsf(tile[k / 66][k % 66]) <= 16.0f * mean;
  even = __syncthreads_and(even);
  const int ty = t / 32, tx = t % 32 * 2;
  float y0 = 0.0f, y1 = 0.0f;
  for (int i = 0; i < 3; ++i) {
    const float d0 = tile[ty + i][tx], d1 = tile[ty + i][tx + 1], d2 = tile[ty + i][tx + 2], d3 = tile[ty + i][tx + 3];
    const float g0 = w[3 * i], g1 = w[3 * i + 1], g2 = w[3 * i + 2];
    if (even) {
      const float p = (d0 - d2) * g0, q = (d1 + d2) * (0.5f * (g0 + g1 + g2)), s = (d2 - d1) * (0.5f * (g0 - g1 + g2)), u = (d1 - d3) * g2;
      y0 += p + q + s;
      y1 += q - s - u;
    } else {
      y0 += d0 * g0 + d1 * g1 + d2 * g2;
      y1 += d1 * g0 + d2 * g1 + d3 * g2;
    }
  }
  const int r = r0 + 1 + ty, c = c0 + 1 + tx;
  if (r < rows && c < columns) out[(size_t)r * columns + c] = y0;
  if (r < rows && c + 1 < columns) out[(size_t)r * columns + c + 1] = y1;
}

extern "C" void launch_convolution(float* out, const float* image, const float* weights, int rows, int columns,
                                   int radius, cudaStream_t stream) {
  if (radius == 1)
    ker_winograd<<<dim3((columns + 63) / 64, (rows + 7) / 8), 256, 0, stream>>>(out, image, weights, rows, columns);
  else
    ker_direct<<<dim3((columns + 31) / 32, (rows + 7) / 8), dim3(32, 8), 0, stream>>>(out, image, weights, rows, columns, radius);
}
