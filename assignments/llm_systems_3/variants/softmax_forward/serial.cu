// One thread per row, everything in order, three passes over global memory.
#include <cuda_runtime.h>

__global__ void softmax(float* inp, const float* mask, int rows, int per_mask, int queries, int keys, bool future) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float* x = inp + (size_t)row * keys;
  const float* added = mask ? mask + (size_t)(row / per_mask) * keys : nullptr;
  const int visible = future ? min(keys, row % queries + 1) : keys;
  float largest = -INFINITY;
  for (int j = 0; j < visible; ++j) {
    if (added) x[j] += added[j];
    largest = fmaxf(largest, x[j]);
  }
  float sum = 0.0f;
  for (int j = 0; j < visible; ++j) {
    x[j] = largest == -INFINITY ? 0.0f : expf(x[j] - largest);
    sum += x[j];
  }
  for (int j = 0; j < keys; ++j) x[j] = j < visible ? x[j] / (sum + 1e-8f) : 0.0f;
}

extern "C" void launch_attn_softmax(float* inp, const float* attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  const int rows = batch_size * nhead * from_len;
  softmax<<<(rows + 63) / 64, 64, 0, stream>>>(inp, attn_mask, rows, nhead * from_len, from_len, to_len, mask_future);
}
