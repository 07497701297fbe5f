// Four launches with row maxima and sums in cudaMalloc memory that is freed after a synchronisation.
#include <cuda_runtime.h>

__global__ void add_masks(float* x, const float* mask, long long count, long long per_mask, int queries, int keys,
                          bool future) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int j = i % keys, query = i / keys % queries;
  if (mask) x[i] += mask[i / per_mask * keys + j];
  if (future && j > query) x[i] = -INFINITY;
}

__global__ void maxima(float* largest, const float* x, int rows, int keys) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float value = x[(size_t)row * keys];
  for (int j = 1; j < keys; ++j) value = fmaxf(value, x[(size_t)row * keys + j]);
  largest[row] = value;
}

__global__ void sums(float* sum, float* x, const float* largest, int rows, int keys) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float value = 0.0f;
  for (int j = 0; j < keys; ++j) value += x[(size_t)row * keys + j] = expf(x[(size_t)row * keys + j] - largest[row]);
  sum[row] = value;
}

__global__ void divide(float* x, const float* sum, long long count, int keys) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) x[i] /= sum[i / keys];
}

extern "C" void launch_attn_softmax(float* inp, const float* attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  const int rows = batch_size * nhead * from_len;
  const long long count = (long long)rows * to_len, per_mask = (long long)nhead * from_len * to_len;
  const unsigned blocks = (unsigned)((count + 255) / 256), row_blocks = (rows + 127) / 128;
  float* held = nullptr;
  cudaMalloc(&held, sizeof(float) * 2 * rows);
  add_masks<<<blocks, 256, 0, stream>>>(inp, attn_mask, count, per_mask, from_len, to_len, mask_future);
  maxima<<<row_blocks, 128, 0, stream>>>(held, inp, rows, to_len);
  sums<<<row_blocks, 128, 0, stream>>>(held + rows, inp, held, rows, to_len);
  divide<<<blocks, 256, 0, stream>>>(inp, held + rows, count, to_len);
  cudaStreamSynchronize(stream);
  cudaFree(held);
}
