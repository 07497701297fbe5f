// Softmax forward in place: a warp per row; the maximum and the sum belong together and are merged as pairs.
#include <cuda_runtime.h>
#include <math_constants.h>

struct Pair {
  float largest, sum;
};

__device__ Pair merge(Pair a, Pair b) {
  if (a.largest < b.largest) {
    const Pair kept = a;
    a = b;
    b = kept;
  }
  if (b.sum > 0) a.sum += b.sum * expf(b.largest - a.largest);
  return a;
}

__global__ void ker_attn_softmax(float* inp, const float* mask, long long rows, int per_batch, int queries, int keys,
                                 bool future) {
  const long long row = static_cast<long long>(blockIdx.x) * 8 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  float* x = inp + row * keys;
  const float* m = mask ? mask + row / per_batch * keys : nullptr;
  const int query = static_cast<int>(row % queries), seen = future && query < keys - 1 ? query + 1 : keys;
  Pair mine{-CUDART_INF_F, 0.0f};
  for (int key = lane; key < seen; key += 32) {
    const float logit = m ? x[key] + m[key] : x[key];
    if (logit > -CUDART_INF_F) mine = merge(mine, Pair{logit, 1.0f});
  }
  for (int offset = 16; offset > 0; offset /= 2)
    mine = merge(mine, Pair{__shfl_xor_sync(0xffffffff, mine.largest, offset), __shfl_xor_sync(0xffffffff, mine.sum, offset)});
  const float factor = mine.sum > 0 ? 1.0f / mine.sum : 0.0f;
  for (int key = lane; key < keys; key += 32) {
    const float logit = m ? x[key] + m[key] : x[key];
    x[key] = key < seen && mine.sum > 0 ? expf(logit - mine.largest) * factor : 0.0f;
  }
}

extern "C" void launch_attn_softmax(float* inp, const float* attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  const long long rows = static_cast<long long>(batch_size) * nhead * from_len;
  ker_attn_softmax<<<static_cast<unsigned>((rows + 7) / 8), 256, 0, stream>>>(inp, attn_mask, rows, nhead * from_len,
                                                                             from_len, to_len, mask_future);
}
