// Softmax over the last axis, forward (problem 1) and backward (problem 2). ASSIGNMENT.md says what each must do.
// Write the bodies marked YOUR CODE HERE. You may change everything but the two launch_ functions' names and parameters.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cub/block/block_load.cuh>
#include <cub/block/block_store.cuh>

#include "block_reduce.h"

namespace cg = cooperative_groups;

[[maybe_unused]] constexpr float EPSILON = 1e-8f;

// Rows of more than 32 keys: one block per row, ITEMS keys per thread.
//
// inp        [batch_size, nhead, from_len, to_len], in place
// attn_mask  [batch_size, to_len], added to inp, or null
template <int BLOCK, int ITEMS>
__global__ void ker_attn_softmax(float* inp, const float* attn_mask, int nhead, int from_len, int to_len,
                                 bool mask_future) {
  // CUB moves a row between memory and the registers of a block; past `valid` items it fills in or leaves out.
  //   BlockLoad(storage.load).Load(row, items, to_len, REDUCE_MIN);
  //   BlockStore(storage.store).Store(row, items, to_len);
  // Where two of them share storage, put a __syncthreads() between.
  using BlockLoad = cub::BlockLoad<float, BLOCK, ITEMS, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using BlockStore = cub::BlockStore<float, BLOCK, ITEMS, cub::BLOCK_STORE_WARP_TRANSPOSE>;

  // YOUR CODE HERE (softmax_forward)
  // 1. Which row is this block's, and which batch's mask belongs to it?
  // 2. Load the row, add the mask, hide the future: keys j > query i.
  // 3. Maximum of the row: block_reduce<Max, 1>.
  // 4. exp(x - maximum) and its sum: block_reduce<Sum, 1>.
  // 5. Divide and store.
}

// Rows of at most 32 keys: one warp per row, so nobody waits for a block.
template <int BLOCK, int ITEMS>
__global__ void ker_attn_softmax_lt32(float* inp, const float* attn_mask, int batch_size, int nhead, int from_len,
                                      int to_len, bool mask_future) {
  // YOUR CODE HERE (softmax_forward)
  // As above with warp_reduce. The number of rows need not be a multiple of the rows per block.
}

extern "C" void launch_attn_softmax(float* inp, const float* attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  // One instance per bucket, so that ITEMS is known at compile time and a row fits into registers. Launch on `stream`:
  //   ker_attn_softmax<32, 2><<<blocks, 32, 0, stream>>>(...)
  // Blocks along y and z are limited to 65535, along x to 2^31 - 1.
  if (to_len <= 32) {
    // YOUR CODE HERE (softmax_forward)
  } else if (to_len <= 64) {
    // YOUR CODE HERE (softmax_forward)
  } else if (to_len <= 128) {
    // YOUR CODE HERE (softmax_forward)
  } else if (to_len <= 256) {
    // YOUR CODE HERE (softmax_forward)
  } else if (to_len <= 384) {
    // YOUR CODE HERE (softmax_forward)
  } else if (to_len <= 512) {
    // YOUR CODE HERE (softmax_forward)
  } else if (to_len <= 768) {
    // YOUR CODE HERE (softmax_forward)
  } else if (to_len <= 1024) {
    // YOUR CODE HERE (softmax_forward)
  } else if (to_len <= 2048) {
    // YOUR CODE HERE (softmax_forward)
  }
}

// One warp per row, ITEMS keys per lane.
//
// grad  [rows, softmax_len], in place: the gradient of the output becomes the gradient of the input
// soft  [rows, softmax_len], the output of the forward pass
template <int ITEMS>
__global__ void ker_attn_softmax_bw(float* grad, const float* soft, int rows, int softmax_len) {
  const auto block = cg::this_thread_block();
  [[maybe_unused]] const auto warp = cg::tiled_partition<32>(block);  // warp.thread_rank(), warp.shfl_xor(value, offset), ...

  // YOUR CODE HERE (softmax_backward)
  // 1. Load gradient and output of the row, ITEMS of each per lane.
  // 2. Sum of their products over the row.
  // 3. soft * (grad - sum), stored over grad.
}

extern "C" void launch_attn_softmax_bw(float* out_grad, const float* soft_inp, int rows, int softmax_len,
                                       cudaStream_t stream) {
  // Several rows per block: four warps make a block of 128.
  if (softmax_len <= 32) {
    // YOUR CODE HERE (softmax_backward)
  } else if (softmax_len <= 64) {
    // YOUR CODE HERE (softmax_backward)
  } else if (softmax_len <= 128) {
    // YOUR CODE HERE (softmax_backward)
  } else if (softmax_len <= 256) {
    // YOUR CODE HERE (softmax_backward)
  } else if (softmax_len <= 384) {
    // YOUR CODE HERE (softmax_backward)
  } else if (softmax_len <= 512) {
    // YOUR CODE HERE (softmax_backward)
  } else if (softmax_len <= 768) {
    // YOUR CODE HERE (softmax_backward)
  } else if (softmax_len <= 1024) {
    // YOUR CODE HERE (softmax_backward)
  } else if (softmax_len <= 2048) {
    // YOUR CODE HERE (softmax_backward)
  }
}
