// What the cheats start from: right LayerNorms, a rather slow one with a block of up to 256 threads per row, and one
// with a thread per row that is too slow for the target.
#pragma once
#include <cuda_runtime.h>

// Of a block: a power of two, and no more than a short row needs, as the simulator executes each of them.
inline int threads(int columns) {
  int count = 32;
  while (count < columns && count < 256) count *= 2;
  return count;
}

__device__ inline float block_sum(float value) {
  __shared__ float cache[256];
  cache[threadIdx.x] = value;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) cache[threadIdx.x] += cache[threadIdx.x + half];
    __syncthreads();
  }
  const float sum = cache[0];
  __syncthreads();
  return sum;
}

__device__ inline void norm_row(float* out, float* vars, float* means, const float* inp, const float* scale,
                                const float* bias, int row, int columns) {
  const float* x = inp + static_cast<size_t>(row) * columns;
  float* y = out + static_cast<size_t>(row) * columns;
  float sum = 0.0f, square = 0.0f;
  for (int j = threadIdx.x; j < columns; j += blockDim.x) sum += x[j];
  const float mean = block_sum(sum) / columns;
  for (int j = threadIdx.x; j < columns; j += blockDim.x) square += (x[j] - mean) * (x[j] - mean);
  const float variance = block_sum(square) / columns, root = rsqrtf(variance + 1e-8f);
  for (int j = threadIdx.x; j < columns; j += blockDim.x) y[j] = (x[j] - mean) * root * scale[j] + bias[j];
  if (threadIdx.x == 0) {
    means[row] = mean;
    vars[row] = variance;
  }
}

__global__ void norm_rows(float* out, float* vars, float* means, const float* inp, const float* scale,
                          const float* bias, int columns) {
  norm_row(out, vars, means, inp, scale, bias, blockIdx.x, columns);
}

__device__ inline void norm_row_alone(float* out, float* vars, float* means, const float* inp, const float* scale,
                                      const float* bias, int row, int columns) {
  const float* x = inp + static_cast<size_t>(row) * columns;
  float sum = 0.0f, square = 0.0f;
  for (int j = 0; j < columns; ++j) sum += x[j];
  const float mean = sum / columns;
  for (int j = 0; j < columns; ++j) square += (x[j] - mean) * (x[j] - mean);
  const float variance = square / columns, root = rsqrtf(variance + 1e-8f);
  for (int j = 0; j < columns; ++j)
    out[static_cast<size_t>(row) * columns + j] = (x[j] - mean) * root * scale[j] + bias[j];
  means[row] = mean;
  vars[row] = variance;
}

__global__ void norm_by_thread(float* out, float* vars, float* means, const float* inp, const float* scale,
                               const float* bias, int rows, int columns) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) norm_row_alone(out, vars, means, inp, scale, bias, row, columns);
}

#define LAUNCH_LAYERNORM                                                                                          \
  extern "C" void launch_layernorm(float* ln_res, float* vars, float* means, const float* inp, const float* scale, \
                                   const float* bias, int batch_size, int hidden_dim, cudaStream_t stream)
