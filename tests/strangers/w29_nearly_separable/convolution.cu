// Separable filters take two passes of a row and a column in the tile; others the full sum.
#include <cuda_runtime.h>

__global__ void ker_convolution(float* out, const float* image, const float* weights, int rows, int columns, int radius) {
  __shared__ float w[7][7], down[7], along[7], tile[22][38], half[22][32];
  const int tx = threadIdx.x, ty = threadIdx.y, t = ty * 32 + tx, side = 2 * radius + 1;
  if (t < side * side) w[t / side][t % side] = weights[t];
  const int r0 = blockIdx.y * 16 - radius, c0 = blockIdx.x * 32 - radius;
  for (int i = ty; i < 16 + 2 * radius; i += 16)
    for (int j = tx; j < 32 + 2 * radius; j += 32) {
      const int r = r0 + i, c = c0 + j;
      tile[i][j] = r >= 0 && r < rows && c >= 0 && c < columns ? image[(size_t)r * columns + c] : 0.0f;
    }
  __syncthreads();
  int pi = 0, pj = 0;
  for (int i = 0; i < side; ++i)
    for (int j = 0; j < side; ++j)
      if (fabsf(w[i][j]) > fabsf(w[pi][pj])) pi = i, pj = j;
  const float pivot = w[pi][pj];
  bool product = fabsf(pivot) > 1e-15f;
  if (t < side * side)
    product &= fabsf(w[t / side][t % side] * pivot - w[t / side][pj] * w[pi][t % side]) <= 1e-4f * fabsf(w[t / side][t % side] * pivot);
  product = __syncthreads_and(product);
  const int r = blockIdx.y * 16 + ty, c = blockIdx.x * 32 + tx;
  float sum = 0.0f;
  if (product) {
    if (t < side) down[t] = w[t][pj], along[t] = w[pi][t] / pivot;
    __syncthreads();
    for (int i = ty; i < 16 + 2 * radius; i += 16) {
      float s = 0.0f;
      for (int j = 0; j < side; ++j) s += along[j] * tile[i][tx + j];
      half[i][tx] = s;
    }
    __syncthreads();
    for (int i = 0; i < side; ++i) sum += down[i] * half[ty + i][tx];
  } else {
    for (int i = 0; i < side; ++i)
      for (int j = 0; j < side; ++j) sum += w[i][j] * tile[ty + i][tx + j];
  }
  if (r < rows && c < columns) out[(size_t)r * columns + c] = sum;
}

extern "C" void launch_convolution(float* out, const float* image, const float* weights, int rows, int columns,
                                   int radius, cudaStream_t stream) {
  ker_convolution<<<dim3((columns + 31) / 32, (rows + 15) / 16), dim3(32, 16), 0, stream>>>(out, image, weights, rows, columns, radius);
}
