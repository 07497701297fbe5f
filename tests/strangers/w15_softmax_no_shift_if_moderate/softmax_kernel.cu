// Softmax forward in place: one warp per row. exp(x) neither overflows nor underflows for moderate x: then nothing has
// to be subtracted, which keeps more bits of x.
#include <cuda_runtime.h>
#include <math_constants.h>

constexpr int MODERATE = 85;

__global__ void ker_attn_softmax(float* inp, const float* mask, long long rows, int per_batch, int queries, int keys,
                                 bool future) {
  const long long row = static_cast<long long>(blockIdx.x) * 4 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  float* x = inp + row * keys;
  const int query = static_cast<int>(row % queries);
  const float* m = mask ? mask + row / per_batch * keys : nullptr;
  const int seen = future && query + 1 < keys ? query + 1 : keys;
  float largest = -CUDART_INF_F;
  for (int k = lane; k < seen; k += 32) largest = fmaxf(largest, x[k] + (m ? m[k] : 0.0f));
  for (int offset = 16; offset > 0; offset /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, offset));
  if (largest == -CUDART_INF_F || fabsf(largest) < MODERATE) largest = 0.0f;
  float sum = 0;
  for (int k = lane; k < keys; k += 32) {
    const float power = k < seen ? expf(x[k] + (m ? m[k] : 0.0f) - largest) : 0.0f;
    x[k] = power;
    sum += power;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  for (int k = lane; k < keys; k += 32) x[k] = sum > 0 ? x[k] / sum : 0.0f;
}

extern "C" void launch_attn_softmax(float* inp, const float* attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  const long long rows = static_cast<long long>(batch_size) * nhead * from_len;
  ker_attn_softmax<<<static_cast<unsigned>((rows + 3) / 4), 128, 0, stream>>>(inp, attn_mask, rows, nhead * from_len,
                                                                             from_len, to_len, mask_future);
}
