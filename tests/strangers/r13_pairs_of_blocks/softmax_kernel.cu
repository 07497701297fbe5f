#include <cuda_runtime.h>

__device__ inline float warp_sum(float v) {
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}
__device__ inline float warp_max(float v) {
  for (int d = 16; d; d /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}

// A warp per row.
__global__ void ker_attn_softmax(float* inp, const float* attn_mask, long long rows, int per_batch, int from_len, int to_len,
                                 bool mask_future) {
  const long long row = (long long)blockIdx.x * 4 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  float* x = inp + row * to_len;
  const float* mask = attn_mask ? attn_mask + row / per_batch * to_len : nullptr;
  const int query = (int)(row % from_len), keys = mask_future ? min(to_len, query + 1) : to_len;
  float m = -INFINITY;
  for (int j = lane; j < keys; j += 32) m = fmaxf(m, x[j] + (mask ? mask[j] : 0.0f));
  m = warp_max(m);
  float s = 0.0f;
  for (int j = lane; j < keys; j += 32) s += __expf(x[j] + (mask ? mask[j] : 0.0f) - m);
  s = warp_sum(s);
  const float f = 1.0f / s;
  for (int j = lane; j < to_len; j += 32) x[j] = j < keys ? __expf(x[j] + (mask ? mask[j] : 0.0f) - m) * f : 0.0f;
}

extern "C" void launch_attn_softmax(float* inp, const float* attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  const long long rows = (long long)batch_size * nhead * from_len;
  ker_attn_softmax<<<(unsigned)((rows + 3) / 4), 128, 0, stream>>>(inp, attn_mask, rows, nhead * from_len, from_len, to_len,
                                                                  mask_future);
}

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

using Word = unsigned long long;

__global__ void ker_pairs(float* grad, const float* soft, Word* words, int rows, int len) {
  __shared__ float other;
  const int pair = blockIdx.x / 2, half = blockIdx.x % 2, pairs = gridDim.x / 2;
  const int middle = (len + 1) / 2, begin = half ? middle : 0, end = half ? len : middle;
  unsigned round = 0;
  for (int row = pair; row < rows; row += pairs, ++round) {
    float* g = grad + (size_t)row * len;
    const float* y = soft + (size_t)row * len;
    float s = 0.0f;
    for (int j = begin + threadIdx.x; j < end; j += blockDim.x) s += g[j] * y[j];
    s = block_sum(s);
    if (threadIdx.x == 0) {
      volatile Word* mine = &words[(pair * 2 + half) * 2 + round % 2];
      volatile Word* others = &words[(pair * 2 + (half ^ 1)) * 2 + round % 2];
      *mine = ((Word)(round + 1) << 32) | __float_as_uint(s);
      Word w;
      do w = *others;
      while ((unsigned)(w >> 32) != round + 1);
      other = __uint_as_float((unsigned)w);
    }
    __syncthreads();
    s += other;
    for (int j = begin + threadIdx.x; j < end; j += blockDim.x) g[j] = y[j] * (g[j] - s);
    __syncthreads();
  }
}

extern "C" void launch_attn_softmax_bw(float* out_grad, const float* soft_inp, int rows, int softmax_len,
                                       cudaStream_t stream) {
  const int pairs = rows < 64 ? rows : 64;
  Word* words;
  cudaMallocAsync(&words, 4 * pairs * sizeof(Word), stream);
  cudaMemsetAsync(words, 0, 4 * pairs * sizeof(Word), stream);
  ker_pairs<<<2 * pairs, softmax_len > 256 ? 128 : 32, 0, stream>>>(out_grad, soft_inp, words, rows, softmax_len);
  cudaFreeAsync(words, stream);
}
