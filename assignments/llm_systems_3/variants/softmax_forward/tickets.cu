// Blocks that stay take rows by an atomic counter; scratch in global memory, reversed, in turns for every other row.
// Short rows get blocks of a warp.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

template <int THREADS>
__global__ void softmax(float* inp, const float* __restrict__ mask, float* scratch, int* next, int rows, int per_mask,
                        int queries, int keys, bool future) {
  __shared__ int taken;
  __shared__ float largests[THREADS / 32], sums[THREADS / 32];
  const auto block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  for (int round = 0;; ++round) {
    if (block.thread_rank() == 0) taken = atomicAdd(next, 1);
    block.sync();
    const int row = taken;
    if (row >= rows) break;
    float* held = scratch + (size_t)(2 * blockIdx.x + round % 2) * keys;
    float* x = inp + (size_t)row * keys;
    const float* added = mask ? mask + (size_t)(row / per_mask) * keys : nullptr;
    const int visible = future ? min(keys, row % queries + 1) : keys;
    float largest = -INFINITY, sum = 0.0f;
    for (int j = threadIdx.x; j < keys; j += THREADS) {
      const float value = j < visible ? x[j] + (added ? __ldg(added + j) : 0.0f) : -INFINITY;
      held[keys - 1 - j] = value;
      largest = fmaxf(largest, value);
    }
    largest = cg::reduce(warp, largest, cg::greater<float>());
    if (warp.thread_rank() == 0) largests[warp.meta_group_rank()] = largest;
    block.sync();
    for (const float other : largests) largest = fmaxf(largest, other);
    for (int j = threadIdx.x; j < keys; j += THREADS) sum += held[j] = __expf(held[j] - largest);
    sum = cg::reduce(warp, sum, cg::plus<float>());
    if (warp.thread_rank() == 0) sums[warp.meta_group_rank()] = sum;
    block.sync();
    sum = 0.0f;
    for (const float other : sums) sum += other;
    for (int j = threadIdx.x; j < keys; j += THREADS) x[j] = held[keys - 1 - j] / sum;
  }
}

extern "C" void launch_attn_softmax(float* inp, const float* attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  const int rows = batch_size * nhead * from_len, blocks = min(rows, 64);
  float* scratch;
  int* next;
  cudaMallocAsync(&scratch, sizeof(float) * 2 * blocks * to_len, stream);
  cudaMallocAsync(&next, sizeof(int), stream);
  cudaMemsetAsync(next, 0, sizeof(int), stream);
  const bool warp = to_len <= 32;
  const auto kernel = warp ? softmax<32> : softmax<128>;
  kernel<<<blocks, warp ? 32 : 128, 0, stream>>>(inp, attn_mask, scratch, next, rows, nhead * from_len, from_len,
                                                 to_len, mask_future);
  cudaFreeAsync(next, stream);
  cudaFreeAsync(scratch, stream);
}
