// The first thing that comes to mind: a thread per row, which it reads three times. Targets are set so that this does not
// reach those of the forward kernels.
#include <cuda_runtime.h>

__global__ void softmax_by_row(float* inp, const float* mask, int rows, int rows_per_mask, int queries, int keys,
                               bool future) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float* x = inp + static_cast<size_t>(row) * keys;
  const float* added = mask ? mask + static_cast<size_t>(row / rows_per_mask) * keys : nullptr;
  const int visible = future ? min(keys, row % queries + 1) : keys;
  float largest = -INFINITY;
  for (int j = 0; j < visible; ++j) largest = fmaxf(largest, x[j] + (added ? added[j] : 0.0f));
  if (largest == -INFINITY) largest = 0.0f;
  float sum = 0.0f;
  for (int j = 0; j < visible; ++j) sum += expf(x[j] + (added ? added[j] : 0.0f) - largest);
  for (int j = 0; j < keys; ++j)
    x[j] = j < visible ? expf(x[j] + (added ? added[j] : 0.0f) - largest) / (sum + 1e-8f) : 0.0f;
}

__global__ void softmax_bw_by_row(float* grad, const float* soft, int rows, int length) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float* g = grad + static_cast<size_t>(row) * length;
  const float* s = soft + static_cast<size_t>(row) * length;
  float sum = 0.0f;
  for (int j = 0; j < length; ++j) sum += g[j] * s[j];
  for (int j = 0; j < length; ++j) g[j] = s[j] * (g[j] - sum);
}

extern "C" void launch_attn_softmax(float* inp, const float* attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  const int rows = batch_size * nhead * from_len;
  softmax_by_row<<<(rows + 255) / 256, 256, 0, stream>>>(inp, attn_mask, rows, nhead * from_len, from_len, to_len,
                                                         mask_future);
}

extern "C" void launch_attn_softmax_bw(float* out_grad, const float* soft_inp, int rows, int softmax_len,
                                       cudaStream_t stream) {
  softmax_bw_by_row<<<(rows + 255) / 256, 256, 0, stream>>>(out_grad, soft_inp, rows, softmax_len);
}
