#include <cuda_runtime.h>

__device__ inline float warp_sum(float v) {
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}
__device__ inline float warp_max(float v) {
  for (int d = 16; d; d /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}

// A warp for four rows: one reduction of the maximum instead of four.
__global__ void ker_attn_softmax(float* inp, const float* attn_mask, long long rows, int per_batch, int from_len, int to_len,
                                 bool mask_future) {
  const long long first = ((long long)blockIdx.x * 4 + threadIdx.x / 32) * 4;
  const int lane = threadIdx.x % 32;
  if (first >= rows) return;
  const int count = (int)min(4ll, rows - first);
  float m = -1e38f;
  for (int k = 0; k < count; ++k) {
    const long long row = first + k;
    const int keys = mask_future ? min(to_len, (int)(row % from_len) + 1) : to_len;
    const float* mask = attn_mask ? attn_mask + row / per_batch * to_len : nullptr;
    for (int j = lane; j < keys; j += 32) m = fmaxf(m, inp[row * to_len + j] + (mask ? mask[j] : 0.0f));
  }
  m = warp_max(m);
  for (int k = 0; k < count; ++k) {
    const long long row = first + k;
    const int keys = mask_future ? min(to_len, (int)(row % from_len) + 1) : to_len;
    const float* mask = attn_mask ? attn_mask + row / per_batch * to_len : nullptr;
    float* x = inp + row * to_len;
    float top = m, s = 0.0f;
    for (int j = lane; j < keys; j += 32) s += expf(x[j] + (mask ? mask[j] : 0.0f) - top);
    s = warp_sum(s);
    if (s < 1e-10f) {  // too far below the others: with its own maximum
      top = -1e38f;
      for (int j = lane; j < keys; j += 32) top = fmaxf(top, x[j] + (mask ? mask[j] : 0.0f));
      top = warp_max(top);
      s = 0.0f;
      for (int j = lane; j < keys; j += 32) s += expf(x[j] + (mask ? mask[j] : 0.0f) - top);
      s = warp_sum(s);
    }
    for (int j = lane; j < to_len; j += 32) x[j] = j < keys ? expf(x[j] + (mask ? mask[j] : 0.0f) - top) / s : 0.0f;
  }
}

extern "C" void launch_attn_softmax(float* inp, const float* attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  const long long rows = (long long)batch_size * nhead * from_len;
  ker_attn_softmax<<<(unsigned)((rows + 15) / 16), 128, 0, stream>>>(inp, attn_mask, rows, nhead * from_len, from_len, to_len,
                                                                    mask_future);
}

__global__ void ker_attn_softmax_bw(float* grad, const float* soft, long long rows, int len) {
  const long long row = (long long)blockIdx.x * 4 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  float* g = grad + row * len;
  const float* y = soft + row * len;
  float s = 0.0f;
  for (int j = lane; j < len; j += 32) s += g[j] * y[j];
  for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
  for (int j = lane; j < len; j += 32) g[j] = y[j] * (g[j] - s);
}

extern "C" void launch_attn_softmax_bw(float* out_grad, const float* soft_inp, int rows, int softmax_len,
                                       cudaStream_t stream) {
  ker_attn_softmax_bw<<<(unsigned)((rows + 3ll) / 4), 128, 0, stream>>>(out_grad, soft_inp, rows, softmax_len);
}
