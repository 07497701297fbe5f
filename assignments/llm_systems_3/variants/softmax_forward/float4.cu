// float4 where rows are aligned, a warp per row, fast intrinsics; exp2 with the logarithm folded into the scores.
#include <cuda_runtime.h>

constexpr float LOG2_E = 1.44269504f;

__device__ float logit(const float* x, const float* added, int j, int visible) {
  return j < visible ? x[j] + (added ? added[j] : 0.0f) : -INFINITY;
}

template <bool ALIGNED>
__global__ void softmax(float* inp, const float* mask, int rows, int per_mask, int queries, int keys, bool future) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float* x = inp + (size_t)row * keys;
  const float* added = mask ? mask + (size_t)(row / per_mask) * keys : nullptr;
  const int visible = future ? min(keys, row % queries + 1) : keys;
  float largest = -INFINITY, sum = 0.0f;
  for (int j = lane; j < keys; j += 32) largest = fmaxf(largest, logit(x, added, j, visible));
  for (int offset = 16; offset > 0; offset /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, offset));
  for (int j = lane; j < keys; j += 32) sum += exp2f((logit(x, added, j, visible) - largest) * LOG2_E);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  const float scale = __frcp_rn(sum);
  if constexpr (ALIGNED) {
    for (int j = lane; j < keys / 4; j += 32) {
      float4 four = reinterpret_cast<float4*>(x)[j];
      const float4 more = added ? reinterpret_cast<const float4*>(added)[j] : make_float4(0, 0, 0, 0);
      four.x = 4 * j < visible ? __expf(four.x + more.x - largest) * scale : 0.0f;
      four.y = 4 * j + 1 < visible ? __expf(four.y + more.y - largest) * scale : 0.0f;
      four.z = 4 * j + 2 < visible ? __expf(four.z + more.z - largest) * scale : 0.0f;
      four.w = 4 * j + 3 < visible ? __expf(four.w + more.w - largest) * scale : 0.0f;
      reinterpret_cast<float4*>(x)[j] = four;
    }
  } else {
    for (int j = lane; j < keys; j += 32) x[j] = __expf(logit(x, added, j, visible) - largest) * scale;
  }
}

extern "C" void launch_attn_softmax(float* inp, const float* attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  const int rows = batch_size * nhead * from_len, blocks = (rows + 3) / 4;
  if (to_len % 4 == 0)
    softmax<true><<<blocks, 128, 0, stream>>>(inp, attn_mask, rows, nhead * from_len, from_len, to_len, mask_future);
  else
    softmax<false><<<blocks, 128, 0, stream>>>(inp, attn_mask, rows, nhead * from_len, from_len, to_len, mask_future);
}
