// Cooperative groups: tiles of 16 threads per row, reduced by the library; a row is read three times.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

__global__ void softmax(float* inp, const float* mask, int rows, int per_mask, int queries, int keys, bool future) {
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 16;
  if (row >= rows) return;
  float* x = inp + (size_t)row * keys;
  const float* added = mask ? mask + (size_t)(row / per_mask) * keys : nullptr;
  const int visible = future ? min(keys, row % queries + 1) : keys;
  float largest = -INFINITY;
  for (int j = tile.thread_rank(); j < visible; j += 16) largest = fmaxf(largest, x[j] + (added ? added[j] : 0.0f));
  largest = cg::reduce(tile, largest, cg::greater<float>());
  float sum = 0.0f;
  for (int j = tile.thread_rank(); j < visible; j += 16) sum += expf(x[j] + (added ? added[j] : 0.0f) - largest);
  sum = cg::reduce(tile, sum, cg::plus<float>());
  for (int j = tile.thread_rank(); j < keys; j += 16)
    x[j] = j < visible ? expf(x[j] + (added ? added[j] : 0.0f) - largest) / sum : 0.0f;
}

extern "C" void launch_attn_softmax(float* inp, const float* attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  const int rows = batch_size * nhead * from_len;
  softmax<<<(rows + 7) / 8, 128, 0, stream>>>(inp, attn_mask, rows, nhead * from_len, from_len, to_len, mask_future);
}
