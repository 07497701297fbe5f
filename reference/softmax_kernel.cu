// Softmax over the last axis, forward and backward, in place.
//
// What it teaches: a row that stays in registers crosses the memory bus once. Everything else follows from that.
//
//   ker_attn_softmax       eight keys per thread, so a warp per row of 256; maximum and sum by shuffles. Sixteen in rows of
//                          more than 1024 with mask_future, which has fewer keys to read, and in most rows of 257 to 512
//                          with a mask: a warp per row, and the four warps of a block fetch the mask together.
//                          Where a row has more than 512 keys, a block asks the L2 for rows ahead of its own
//   ker_attn_softmax_lt32  rows of at most 32 keys: eight threads per row, four rows per warp, so no lane idles
//   ker_attn_softmax_pairs rows of 257 to 512 without a mask: two rows per warp, so a thread has eight loads in flight
//   ker_attn_softmax_bw    the same shape for the gradient, which needs one reduction only. Where the memory bus is wider
//                          than an H100's, rows of 257 to 512 have a block each, and four keys per thread
//
// Bytes moved, for N = rows * length elements of 4 bytes: forward reads and writes N (8 N bytes) plus the mask, which
// stays in cache; with mask_future it reads only the keys on and below the diagonal. Backward reads 2 N, writes N (12 N).
//
// Launch shape: blocks of 128 threads (more only where a row needs them), ceil(rows / rows per block) of them along x,
// the one grid axis that holds 2^31 - 1 blocks. Nothing is allocated, copied or synchronised. Rows of up to 8192 keys.
//
// Compile: nvcc -O3 --shared -Xcompiler -fPIC -arch=sm_90 -o softmax.so softmax_kernel.cu
#include <cuda_runtime.h>

#include <cstdint>

#include "row.cuh"

constexpr float EPSILON = 1e-8f;
constexpr float LOG2_E = 1.4426950408889634f;

// Division by what the host knows: a product and a shift instead of twenty instructions (Granlund and Montgomery, 1994).
// Exact for dividends below 2^31.
struct Divisor {
  unsigned multiplier;
  int shift = 31;

  explicit Divisor(unsigned value) {
    while (1ull << (shift - 31) < value) ++shift;
    multiplier = static_cast<unsigned>(((1ull << shift) + value - 1) / value);
  }
  __device__ unsigned quotient(unsigned dividend) const { return 1ull * dividend * multiplier >> shift; }
};

// GROUP threads per row, KEYS of them for each thread. How long the caches should keep a row depends on its length: a
// few per cent on an H100, found by trying.
template <int GROUP_, int KEYS_>
struct Bucket {
  static constexpr int GROUP = GROUP_, KEYS = KEYS_;
  static constexpr int THREADS = GROUP > 128 ? GROUP : 128;
  static constexpr int ROWS = THREADS / GROUP;
  static constexpr bool SHORT = GROUP == 8, LONG = GROUP >= 128;  // at most 64 keys; a block per row
  static constexpr bool SHARES_MASK = GROUP == 32 && KEYS == 16;  // one mask for all rows of a block
  static constexpr int LEAST_BLOCKS = SHARES_MASK ? 16 : 1;       // per multiprocessor: all that 32 registers allow
};

constexpr int LINE = 128 / 4;  // floats

// Asks for the row that is `ahead` rows further on, which another block is about to load, a line by each thread.
template <class B>
__device__ inline void prefetch_row(const float* x, unsigned row, int rows, int length, int ahead) {
  const int key = threadIdx.x % B::GROUP * LINE;
  if (key < length && row + ahead < static_cast<unsigned>(rows)) {
    const float* from = x + static_cast<size_t>(ahead) * length + key;
    if constexpr (B::LONG) prefetch_last_to_leave(from);
    else prefetch(from);
  }
}

template <class B, int WIDTH>
__device__ inline void store_result(float* to, const float (&from)[WIDTH]) {
  if constexpr (B::SHORT) store_first_to_leave(to, from);
  else store(to, from);
}

template <class B, int WIDTH>
__device__ inline void softmax_row(float* inp, const float* attn_mask, int rows, Divisor rows_per_mask, int from_len,
                                   int to_len, bool mask_future, int prefetches) {
  constexpr int CHUNKS = B::KEYS / WIDTH;
  __shared__ float maxima[1][MOST_WARPS], sums[1][MOST_WARPS], shared_mask[B::SHARES_MASK ? B::GROUP * B::KEYS : 1];
  const unsigned row = blockIdx.x * B::ROWS + threadIdx.x / B::GROUP;
  const int lane = threadIdx.x % B::GROUP;
  // A row past the end has length 0: its threads touch no memory but stay for the shuffles and barriers.
  const int length = row < static_cast<unsigned>(rows) ? to_len : 0;
  int visible = length;
  if (mask_future) {  // else no load waits for the division
    const int query = row % from_len;
    visible = min(length, query + 1);
  }
  float* x = inp + static_cast<size_t>(row) * to_len;

  // A shared mask is asked for ahead of the row, a piece by each thread. Behind the row and one chunk after the other it
  // costs 4 % on an H100, and whole in the registers of each warp it leaves room for fewer of them.
  float piece[WIDTH] = {};
  if constexpr (B::SHARES_MASK) {
    static_assert(B::THREADS * WIDTH == B::GROUP * B::KEYS, "the pieces make up the mask");
    const int key = threadIdx.x * WIDTH;
    const size_t mask = rows_per_mask.quotient(blockIdx.x * B::ROWS);
    if (attn_mask != nullptr && key < to_len) load(piece, attn_mask + mask * to_len + key);
  }
  if constexpr (B::LONG) {
    if (prefetches >= 1) prefetch_row<B>(x, row, rows, to_len, 16);
    if (prefetches == 2) prefetch_row<B>(x, row, rows, to_len, 48);
  }
  float value[CHUNKS][WIDTH];
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const int key = (c * B::GROUP + lane) * WIDTH;
#pragma unroll
    for (int w = 0; w < WIDTH; ++w) value[c][w] = -INFINITY;
    if (key < visible) {
      if constexpr (B::LONG) load_last_to_leave(value[c], x + key);
      else load(value[c], x + key);
    }
  }
  if (attn_mask != nullptr) {
    const float* mask = shared_mask;
    if constexpr (B::SHARES_MASK) {
      store(shared_mask + threadIdx.x * WIDTH, piece);
      __syncthreads();
    } else {
      mask = attn_mask + static_cast<size_t>(rows_per_mask.quotient(row)) * to_len;
    }
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int key = (c * B::GROUP + lane) * WIDTH;
      float added[WIDTH] = {};
      if (key < visible) load(added, mask + key);
#pragma unroll
      for (int w = 0; w < WIDTH; ++w) value[c][w] += added[w];
    }
  }

  float largest[1] = {-INFINITY};
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const int key = (c * B::GROUP + lane) * WIDTH;
#pragma unroll
    for (int w = 0; w < WIDTH; ++w) {
      if (key + w >= visible) value[c][w] = -INFINITY;  // the diagonal may cut through a chunk
      largest[0] = fmaxf(largest[0], value[c][w]);
    }
  }
  reduce<Max, B::GROUP>(largest, maxima);
  // Nothing visible: -inf - -inf would be NaN; any finite shift gives a row of zeros.
  const float shift = largest[0] == -INFINITY ? 0.0f : largest[0];

  float sum[1] = {0.0f};
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
    for (int w = 0; w < WIDTH; ++w) {
      value[c][w] = exp2f((value[c][w] - shift) * LOG2_E);  // expf would take three instructions more for the last bit
      sum[0] += value[c][w];
    }
  }
  reduce<Sum, B::GROUP>(sum, sums);
  const float scale = 1.0f / (sum[0] + EPSILON);

#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const int key = (c * B::GROUP + lane) * WIDTH;
#pragma unroll
    for (int w = 0; w < WIDTH; ++w) value[c][w] *= scale;
    if (key < length) store_result<B>(x + key, value[c]);
  }
}

template <class B, int WIDTH>
__global__ void __launch_bounds__(B::THREADS, B::LEAST_BLOCKS)
    ker_attn_softmax(float* inp, const float* attn_mask, int rows, Divisor rows_per_mask, int from_len, int to_len,
                     bool mask_future, int prefetches) {
  softmax_row<B, WIDTH>(inp, attn_mask, rows, rows_per_mask, from_len, to_len, mask_future, prefetches);
}

template <int WIDTH>
__global__ void __launch_bounds__(128)
    ker_attn_softmax_lt32(float* inp, const float* attn_mask, int rows, Divisor rows_per_mask, int from_len, int to_len,
                          bool mask_future) {
  softmax_row<Bucket<8, 4>, WIDTH>(inp, attn_mask, rows, rows_per_mask, from_len, to_len, mask_future, 0);
}

// Softmax of two rows by the one warp of a block. A thread whose keys lie behind the end loads its first ones again: a
// condition before each load costs 3 % on an H100. Code for a mask costs 2 %: it takes the registers of other warps. WHOLE:
// a row has as many keys as its threads can hold, so no key is compared with the end, which saves 0.3 %.
template <bool WHOLE>
__global__ void __launch_bounds__(32) ker_attn_softmax_pairs(float* inp, int keys) {
  constexpr int ROWS = 2, CHUNKS = 4, WIDTH = 4;
  __shared__ float maxima[ROWS][MOST_WARPS], sums[ROWS][MOST_WARPS];
  const int lane = threadIdx.x % 32, to_len = WHOLE ? CHUNKS * 32 * WIDTH : keys;
  float* x = inp + static_cast<size_t>(blockIdx.x) * ROWS * to_len;

  float value[ROWS][CHUNKS][WIDTH];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int key = (c * 32 + lane) * WIDTH;
      load(value[r][c], x + r * to_len + (key < to_len ? key : lane * WIDTH));
    }
  }
  float largest[ROWS], sum[ROWS] = {};
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    largest[r] = -INFINITY;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
      for (int w = 0; w < WIDTH; ++w) {
        if ((c * 32 + lane) * WIDTH >= to_len) value[r][c][w] = -INFINITY;
        largest[r] = fmaxf(largest[r], value[r][c][w]);
      }
    }
  }
  reduce<Max, 32>(largest, maxima);
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const float shift = largest[r] == -INFINITY ? 0.0f : largest[r];  // as in softmax_row
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
      for (int w = 0; w < WIDTH; ++w) {
        value[r][c][w] = exp2f((value[r][c][w] - shift) * LOG2_E);
        sum[r] += value[r][c][w];
      }
    }
  }
  reduce<Sum, 32>(sum, sums);
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const float scale = 1.0f / (sum[r] + EPSILON);
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int key = (c * 32 + lane) * WIDTH;
#pragma unroll
      for (int w = 0; w < WIDTH; ++w) value[r][c][w] *= scale;
      if (key < to_len) store(x + r * to_len + key, value[r][c]);
    }
  }
}

template <class B, int WIDTH>
__device__ inline void load_for_gradient(float (&to)[WIDTH], const float* from) {
  if constexpr (B::LONG) load_last_to_leave(to, from);
  else if constexpr (B::SHORT) load_first_to_leave(to, from);
  else load(to, from);
}

template <class B, int WIDTH>
__global__ void __launch_bounds__(B::THREADS)
    ker_attn_softmax_bw(float* out_grad, const float* soft_inp, int rows, int softmax_len) {
  constexpr int CHUNKS = B::KEYS / WIDTH;
  __shared__ float sums[1][MOST_WARPS];
  const unsigned row = blockIdx.x * B::ROWS + threadIdx.x / B::GROUP;
  const int lane = threadIdx.x % B::GROUP;
  const int length = row < static_cast<unsigned>(rows) ? softmax_len : 0;
  float* out = out_grad + static_cast<size_t>(row) * softmax_len;
  const float* soft = soft_inp + static_cast<size_t>(row) * softmax_len;

  if constexpr (B::GROUP == 64 && WIDTH == 4) {  // 1 % on an H100; longer rows lose by it, and these on an H200
    prefetch_row<B>(out, row, rows, softmax_len, 16);
    prefetch_row<B>(soft, row, rows, softmax_len, 16);
  }
  float grad[CHUNKS][WIDTH] = {}, weight[CHUNKS][WIDTH] = {};
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const int key = (c * B::GROUP + lane) * WIDTH;
    if (key < length) {
      load_for_gradient<B>(grad[c], out + key);
      load_for_gradient<B>(weight[c], soft + key);
    }
  }
  float sum[1] = {0.0f};
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
    for (int w = 0; w < WIDTH; ++w) sum[0] += grad[c][w] * weight[c][w];
  }
  reduce<Sum, B::GROUP>(sum, sums);
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const int key = (c * B::GROUP + lane) * WIDTH;
#pragma unroll
    for (int w = 0; w < WIDTH; ++w) grad[c][w] = weight[c][w] * (grad[c][w] - sum[0]);
    if (key < length) store_result<B>(out + key, grad[c]);
  }
}

// The smallest bucket that holds a row, handed to `launch`.
template <class Launch>
static void with_bucket(int length, Launch launch) {
  if (length <= 32) launch(Bucket<8, 4>{});
  else if (length <= 64) launch(Bucket<8, 8>{});
  else if (length <= 128) launch(Bucket<16, 8>{});
  else if (length <= 256) launch(Bucket<32, 8>{});
  else if (length <= 512) launch(Bucket<64, 8>{});
  else if (length <= 1024) launch(Bucket<128, 8>{});
  else if (length <= 2048) launch(Bucket<256, 8>{});
  else if (length <= 4096) launch(Bucket<512, 8>{});
  else if (length <= 8192) launch(Bucket<1024, 8>{});
}

static unsigned blocks_for(int rows, int rows_per_block) {
  return (static_cast<unsigned>(rows) + rows_per_block - 1) / rows_per_block;
}

static bool aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(float4) == 0; }

template <int WIDTH>
static void softmax(float* inp, const float* attn_mask, int rows, int rows_per_mask, int from_len, int to_len,
                    bool mask_future, cudaStream_t stream) {
  const Divisor per_mask(rows_per_mask);
  const auto launch = [=](auto bucket) {
    using B = decltype(bucket);
    const unsigned blocks = blocks_for(rows, B::ROWS);
    if constexpr (B::KEYS == 4) {
      ker_attn_softmax_lt32<WIDTH>
          <<<blocks, B::THREADS, 0, stream>>>(inp, attn_mask, rows, per_mask, from_len, to_len, mask_future);
    } else {
      // How many rows of other blocks each block prefetches: one takes 0.5 % off the time on an H100 and 1 % on an H200; a
      // second one 0.2 % more on an H100, but costs 6 % on an H200. With mask_future half of a row would be read in vain.
      const int prefetches = !B::LONG || mask_future ? 0 : has_wide_bus() ? 1 : 2;
      ker_attn_softmax<B, WIDTH><<<blocks, B::THREADS, 0, stream>>>(inp, attn_mask, rows, per_mask, from_len, to_len,
                                                                    mask_future, prefetches);
    }
  };
  with_bucket(to_len, [=](auto bucket) {
    using B = decltype(bucket);
    if constexpr (B::GROUP >= 256) {
      if (mask_future) {  // hides half of the keys: half of the threads, or most of a block's time is its start
        launch(Bucket<B::GROUP / 2, 2 * B::KEYS>{});
        return;
      }
    }
    if constexpr (B::GROUP == 64 && WIDTH == 4) {
      if (attn_mask == nullptr && !mask_future && rows % 2 == 0) {
        const auto pairs = to_len == B::GROUP * B::KEYS ? ker_attn_softmax_pairs<true> : ker_attn_softmax_pairs<false>;
        pairs<<<rows / 2, 32, 0, stream>>>(inp, to_len);
        return;
      }
      using Sharing = Bucket<B::GROUP / 2, 2 * B::KEYS>;
      if (attn_mask != nullptr && !mask_future && rows_per_mask % Sharing::ROWS == 0) {
        launch(Sharing{});
        return;
      }
    }
    launch(bucket);
  });
}

template <int WIDTH>
static void softmax_bw(float* out_grad, const float* soft_inp, int rows, int softmax_len, cudaStream_t stream) {
  const auto launch = [=](auto bucket) {
    using B = decltype(bucket);
    const unsigned blocks = blocks_for(rows, B::ROWS);
    ker_attn_softmax_bw<B, WIDTH><<<blocks, B::THREADS, 0, stream>>>(out_grad, soft_inp, rows, softmax_len);
  };
  with_bucket(softmax_len, [=](auto bucket) {
    using B = decltype(bucket);
    if constexpr (B::GROUP == 64 && WIDTH == 4) {
      if (has_wide_bus()) {
        launch(Bucket<2 * B::GROUP, B::KEYS / 2>{});
        return;
      }
    }
    launch(bucket);
  });
}

// inp [batch_size, nhead, from_len, to_len] becomes softmax(inp + attn_mask) over its last axis. attn_mask
// [batch_size, to_len] may be null; mask_future hides key j from query i where j > i.
extern "C" void launch_attn_softmax(float* inp, const float* attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  const int rows_per_mask = nhead * from_len;
  const int rows = batch_size * rows_per_mask;
  if (rows == 0) return;
  const auto launch = to_len % 4 == 0 && aligned(inp) && aligned(attn_mask) ? softmax<4> : softmax<1>;
  launch(inp, attn_mask, rows, rows_per_mask, from_len, to_len, mask_future, stream);
}

// out_grad [rows, softmax_len] becomes soft * (out_grad - sum(out_grad * soft)), with soft_inp the forward's output.
extern "C" void launch_attn_softmax_bw(float* out_grad, const float* soft_inp, int rows, int softmax_len,
                                       cudaStream_t stream) {
  const auto launch = softmax_len % 4 == 0 && aligned(out_grad) && aligned(soft_inp) ? softmax_bw<4> : softmax_bw<1>;
  launch(out_grad, soft_inp, rows, softmax_len, stream);
}
