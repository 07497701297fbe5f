// Online softmax: one pass with a running maximum that rescales the running sum, fast intrinsics.
#include <cuda_runtime.h>

__global__ void softmax(float* inp, const float* mask, int rows, int per_mask, int queries, int keys, bool future) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float* x = inp + (size_t)row * keys;
  const float* added = mask ? mask + (size_t)(row / per_mask) * keys : nullptr;
  const int query = row % queries;
  float largest = -1e38f, sum = 0.0f;
  for (int j = lane; j < keys; j += 32) {
    const float logit = future && j > query ? -INFINITY : x[j] + (added ? added[j] : 0.0f);
    const float now = fmaxf(largest, logit);
    sum = sum * __expf(largest - now) + __expf(logit - now);
    largest = now;
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(0xffffffff, largest, offset);
    const float other_sum = __shfl_xor_sync(0xffffffff, sum, offset);
    const float now = fmaxf(largest, other);
    sum = sum * __expf(largest - now) + other_sum * __expf(other - now);
    largest = now;
  }
  for (int j = lane; j < keys; j += 32) {
    const float logit = future && j > query ? -INFINITY : x[j] + (added ? added[j] : 0.0f);
    x[j] = __fdividef(__expf(logit - largest), sum + 1e-8f);
  }
}

extern "C" void launch_attn_softmax(float* inp, const float* attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  const int rows = batch_size * nhead * from_len;
  softmax<<<(rows + 3) / 4, 128, 0, stream>>>(inp, attn_mask, rows, nhead * from_len, from_len, to_len, mask_future);
}
