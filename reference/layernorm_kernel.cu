// LayerNorm over the last axis, forward and backward.
//
// What it teaches: forward is one pass with the row in registers. Backward has two sums that run across each other,
// dx along rows and dgamma, dbeta down columns; done one after the other they read the inputs twice.
//
//   ker_layer_norm           mean, then squared differences from it (nothing cancels), then y; a row stays in registers
//   ker_layer_norm_narrow    rows of 256 columns: mean and variance in one pass of shuffles, and no load behind a condition
//   ker_ln_bw_fused          large inputs: resident blocks walk over the rows; a thread always owns the same columns, so
//                            dx and its share of dgamma, dbeta come from one read; each block leaves one partial sum
//   ker_ln_bw_dgamma_dbetta  adds up the partial sums, in a fixed order: the same bits every time, no atomics
//   ker_ln_bw_split          inputs that fit the L2 cache: some blocks do rows, some columns, side by side in one launch;
//                            what is read twice is read from L2, and no second kernel waits for the first
//
// Bytes moved, for R rows of H: forward 8 R H, backward 12 R H, plus statistics, and partial sums of 8 H bytes per block.
//
// The kernels for small inputs have what they ask for first in the first 48 bytes of their parameters. With `rows` last,
// forward of 5120 x 256 takes 1.7 % longer on an H100, as if the 49th byte began another line of the constant cache.
//
// dx = (g - mean(g) - xhat * mean(g * xhat)) / sigma  with  g = dy * gamma,  xhat = (x - mean) / sigma
// dgamma = sum over rows of dy * xhat,  dbeta = sum over rows of dy
//
// Streams: all of backward is enqueued on stream_1. The partial sums live in one buffer of the device; calls on different
// streams take turns at it through an event. A captured graph leaves that to its owner: do not replay two graphs of
// ker_ln_bw_fused at the same time. Like most launchers, these are for one host thread at a time.
//
// Compile: nvcc -O3 --shared -Xcompiler -fPIC -arch=sm_90 -o layernorm.so layernorm_kernel.cu
#include <cuda_runtime.h>

#include "row.cuh"

constexpr float EPSILON = 1e-8f;

// ---------------------------------------------------------------------------------------------------------- forward

// share is 1 / hidden: a division here would branch to its slow path, and the compiler moves no load across a branch.
//
// TWICE: a row is read again behind the sums, from the L1 cache and with scale and bias, which leaves registers for twice as
// many rows at a time. Else all three come at once: asked for after the sums, they would be a second trip to memory.
template <int GROUP, int CHUNKS, int THREADS, bool TWICE>
__global__ void __launch_bounds__(THREADS)
    ker_layer_norm(float* ln_res, float* vars, float* means, const float* inp, const float* scale, const float* bias,
                   int rows, int hidden, float share) {
  __shared__ float sums[1][MOST_WARPS], squares[1][MOST_WARPS];
  const unsigned row = blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP;
  const int lane = threadIdx.x % GROUP;
  // A row past the end has no columns: its threads touch no memory but stay for the shuffles and barriers.
  const int columns = row < static_cast<unsigned>(rows) ? hidden : 0;
  const float* x = inp + static_cast<size_t>(row) * hidden;
  float* y = ln_res + static_cast<size_t>(row) * hidden;

  float value[CHUNKS][4] = {}, gamma[CHUNKS][4], beta[CHUNKS][4];
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const int column = (c * GROUP + lane) * 4;
    if (column < columns) {
      if constexpr (TWICE) {
        load_to_load_again(value[c], x + column);
      } else {
        if constexpr (GROUP == 512) load_last_to_leave(value[c], x + column);  // from 2052 columns on
        else load(value[c], x + column);
        load(gamma[c], scale + column);
        load(beta[c], bias + column);
      }
    }
  }
  __threadfence_block();  // keeps the compiler from moving a load behind the sums
  float sum[1] = {0.0f};
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) sum[0] += (value[c][0] + value[c][1]) + (value[c][2] + value[c][3]);
  reduce<Sum, GROUP>(sum, sums);
  const float mean = sum[0] * share;

  float square[1] = {0.0f};
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const int column = (c * GROUP + lane) * 4;
    if (column < columns) {
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        value[c][w] -= mean;
        square[0] += value[c][w] * value[c][w];
      }
    }
  }
  reduce<Sum, GROUP>(square, squares);
  const float variance = square[0] * share;
  const float inverse_sigma = rsqrtf(variance + EPSILON);

  if (lane == 0 && columns > 0) {
    means[row] = mean;
    vars[row] = variance;
  }
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const int column = (c * GROUP + lane) * 4;
    if (column < columns) {
      if constexpr (TWICE) {
        load_again(value[c], x + column);
        load(gamma[c], scale + column);
        load(beta[c], bias + column);
#pragma unroll
        for (int w = 0; w < 4; ++w) value[c][w] = value[c][w] - mean;
      }
#pragma unroll
      for (int w = 0; w < 4; ++w) value[c][w] = value[c][w] * inverse_sigma * gamma[c][w] + beta[c][w];
      store(y + column, value[c]);
    }
  }
}

constexpr int NARROW = 256;      // columns
constexpr int MANY_ROWS = 4096;  // from here on smaller blocks are faster on an H100

// Mean of a warp's values and sum of their squared differences from it; each thread comes with those of its COUNT values.
// Two sets of n values with means a and b have together the mean (a + b) / 2, and n / 2 (a - b)^2 more than the sum of
// both sums (Chan, Golub, LeVeque 1979). So the shuffles of both go side by side, and nothing cancels.
template <int COUNT>
__device__ inline void merge(float& mean, float& squares) {
#pragma unroll
  for (int offset = 16, count = COUNT; offset > 0; offset /= 2, count *= 2) {
    const float their_mean = __shfl_xor_sync(0xffffffff, mean, offset);
    const float their_squares = __shfl_xor_sync(0xffffffff, squares, offset);
    const float difference = their_mean - mean;
    mean = (mean + their_mean) * 0.5f;
    squares = squares + their_squares + difference * difference * (count * 0.5f);
  }
}

// A warp takes one row. Behind the check of the row there is no condition, so all loads are on their way at once.
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    ker_layer_norm_narrow(const float* inp, int rows, const float* scale, const float* bias, float* ln_res, float* vars,
                          float* means) {
  constexpr int CHUNKS = NARROW / 128;
  const int row = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  const size_t start = static_cast<size_t>(row) * NARROW;

  float value[CHUNKS][4], gamma[CHUNKS][4], beta[CHUNKS][4];
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const int column = (c * 32 + lane) * 4;
    load(value[c], inp + start + column);
    load(gamma[c], scale + column);
    load(beta[c], bias + column);
  }
  __threadfence_block();  // as above

  float mean = 0.0f, squares = 0.0f;
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) mean += (value[c][0] + value[c][1]) + (value[c][2] + value[c][3]);
  mean *= 32.0f / NARROW;
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
    for (int w = 0; w < 4; ++w) squares += (value[c][w] - mean) * (value[c][w] - mean);
  }
  merge<NARROW / 32>(mean, squares);
  const float variance = squares * (1.0f / NARROW), inverse_sigma = rsqrtf(variance + EPSILON);

  if (lane == 0) {
    means[row] = mean;
    vars[row] = variance;
  }
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
    for (int w = 0; w < 4; ++w) value[c][w] = (value[c][w] - mean) * inverse_sigma * gamma[c][w] + beta[c][w];
    store(ln_res + start + (c * 32 + lane) * 4, value[c]);
  }
}

// --------------------------------------------------------------------------------------------------------- backward

constexpr int BW_THREADS = 512;
constexpr int SLAB = 8;                   // columns of a column block: 32 bytes, the least that memory hands out
constexpr int AHEAD = 2;                  // rows that a thread of a column block has on their way; more cost occupancy
constexpr int MOST_PARTIALS = 4 << 20;    // floats
constexpr int SPLIT_ELEMENTS = 2 << 20;   // 16 MiB of x and dy: stays in any L2 that this is meant for
constexpr int SPLIT_ROWS = 8192;          // above, the few column blocks of a narrow input would run too long

__device__ float partials[MOST_PARTIALS];  // per block: H sums of dy * xhat, then H sums of dy

// What a thread holds of one row.
template <int CHUNKS>
struct Piece {
  float x[CHUNKS][4], dy[CHUNKS][4], mean, inverse_sigma;
};

template <int GROUP, int CHUNKS>
__device__ inline void load_piece(Piece<CHUNKS>& piece, const float* out_grad, const float* inp, const float* vars,
                                  const float* means, int row, int columns) {
  const size_t start = static_cast<size_t>(row) * columns;
  piece.mean = means[row];
  piece.inverse_sigma = rsqrtf(vars[row] + EPSILON);
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const int column = (c * GROUP + threadIdx.x % GROUP) * 4;
    if (column < columns) {
      load(piece.x[c], inp + start + column);
      load(piece.dy[c], out_grad + start + column);
    }
  }
}

// Turns piece.x into xhat and writes dx. Every thread of the block must come, also those of a row past the end. gamma is
// read again for every row: it stays in the L1 cache, and registers are dearer.
template <int GROUP, int CHUNKS>
__device__ inline void finish_row(Piece<CHUNKS>& piece, const float* gamma, float (&shared)[2][MOST_WARPS],
                                  float* inp_grad, int row, int rows, int columns) {
  float sum[2] = {0.0f, 0.0f};  // of g and of g * xhat
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const int column = (c * GROUP + threadIdx.x % GROUP) * 4;
    float scale[4] = {};
    if (column < columns) load(scale, gamma + column);
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const float g = piece.dy[c][w] * scale[w];
      piece.x[c][w] = (piece.x[c][w] - piece.mean) * piece.inverse_sigma;
      sum[0] += g;
      sum[1] += g * piece.x[c][w];
    }
  }
  reduce<Sum, GROUP>(sum, shared);
  const float mean_g = sum[0] / columns, mean_gx = sum[1] / columns;
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const int column = (c * GROUP + threadIdx.x % GROUP) * 4;
    if (row < rows && column < columns) {
      float scale[4], dx[4];
      load(scale, gamma + column);
#pragma unroll
      for (int w = 0; w < 4; ++w)
        dx[w] = (piece.dy[c][w] * scale[w] - mean_g - piece.x[c][w] * mean_gx) * piece.inverse_sigma;
      store(inp_grad + static_cast<size_t>(row) * columns + column, dx);
    }
  }
}

// Two blocks per multiprocessor where registers allow it: one computes while the other waits at its barrier.
template <int GROUP, int CHUNKS>
__global__ void __launch_bounds__(BW_THREADS, CHUNKS == 1 ? 2 : 1)
    ker_ln_bw_fused(const float* out_grad, const float* inp, const float* vars, const float* means, int rows,
                    int columns, const float* gamma, float* inp_grad) {
  constexpr int GROUPS = BW_THREADS / GROUP;
  __shared__ float sums[2][2][MOST_WARPS];
  __shared__ float4 lent[2][GROUPS > 1 ? BW_THREADS : 1];
  const int group = threadIdx.x / GROUP;
  const int stride = gridDim.x * GROUPS;

  float dgamma[CHUNKS][4] = {}, dbeta[CHUNKS][4] = {};

  // The next row is on its way while this one is reduced. Sums alternate between two buffers, so that one barrier per
  // row is enough (see reduce).
  Piece<CHUNKS> next = {};
  int row = blockIdx.x * GROUPS + group;
  if (row < rows) load_piece<GROUP>(next, out_grad, inp, vars, means, row, columns);
  int turn = 0;
  for (int first = blockIdx.x * GROUPS; first < rows; first += stride, row += stride, turn ^= 1) {
    Piece<CHUNKS> piece = next;
    next = {};
    if (row + stride < rows) load_piece<GROUP>(next, out_grad, inp, vars, means, row + stride, columns);
    finish_row<GROUP>(piece, gamma, sums[turn], inp_grad, row, rows, columns);
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        dgamma[c][w] += piece.dy[c][w] * piece.x[c][w];
        dbeta[c][w] += piece.dy[c][w];
      }
    }
  }

  float* partial = partials + static_cast<size_t>(blockIdx.x) * 2 * columns;
  if constexpr (GROUPS > 1) {  // CHUNKS is 1: the groups of the block own the same columns
    lent[0][threadIdx.x] = make_float4(dgamma[0][0], dgamma[0][1], dgamma[0][2], dgamma[0][3]);
    lent[1][threadIdx.x] = make_float4(dbeta[0][0], dbeta[0][1], dbeta[0][2], dbeta[0][3]);
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * GROUP; i += BW_THREADS) {
      const int which = i / GROUP, lane = i % GROUP;
      float4 total = lent[which][lane];
      for (int g = 1; g < GROUPS; ++g) {
        const float4 other = lent[which][g * GROUP + lane];
        total = make_float4(total.x + other.x, total.y + other.y, total.z + other.z, total.w + other.w);
      }
      if (lane * 4 < columns) reinterpret_cast<float4*>(partial + which * columns)[lane] = total;
    }
  } else {
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int column = (c * GROUP + threadIdx.x) * 4;
      if (column < columns) {
        store(partial + column, dgamma[c]);
        store(partial + columns + column, dbeta[c]);
      }
    }
  }
}

// Adds up `count` partial sums: 32 columns per block, 32 threads share a column. gamma_grad and betta_grad count as one
// row of 2 * columns.
__global__ void __launch_bounds__(1024)
    ker_ln_bw_dgamma_dbetta(float* gamma_grad, float* betta_grad, int count, int columns) {
  __shared__ float sums[32][33];  // one more than 32: the transposed read meets 32 different banks
  const int column = blockIdx.x * 32 + threadIdx.x;
  float sum = 0.0f;
  if (column < 2 * columns) {
#pragma unroll 4
    for (int i = threadIdx.y; i < count; i += 32) sum += partials[static_cast<size_t>(i) * 2 * columns + column];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  float total[1] = {sums[threadIdx.x][threadIdx.y]};
  float unused[1][MOST_WARPS];
  reduce<Sum, 32>(total, unused);
  const int out = blockIdx.x * 32 + threadIdx.y;
  if (threadIdx.x == 0 && out < 2 * columns) {
    if (out < columns) gamma_grad[out] = total[0];
    else betta_grad[out - columns] = total[0];
  }
}

// dgamma and dbeta of SLAB columns: two threads side by side read the 32 bytes of a row, the block takes 256 rows at once.
__device__ inline void sum_columns(float* gamma_grad, float* betta_grad, const float* out_grad, const float* inp,
                                   const float* vars, const float* means, int rows, int columns) {
  constexpr int LANES = SLAB / 4, WARPS = BW_THREADS / 32;
  __shared__ float shared[WARPS][2 * SLAB];
  const int column = blockIdx.x * SLAB + threadIdx.x % LANES * 4;
  float sum[8] = {};  // dgamma of four columns, dbeta of four columns
  if (column < columns) {
    constexpr int STEP = BW_THREADS / LANES;
    for (int first = threadIdx.x / LANES; first < rows; first += AHEAD * STEP) {
      float x[AHEAD][4] = {}, dy[AHEAD][4] = {}, mean[AHEAD] = {}, variance[AHEAD] = {};  // past the end: adds 0
#pragma unroll
      for (int a = 0; a < AHEAD; ++a) {
        const int row = first + a * STEP;
        if (row < rows) {
          const size_t at = static_cast<size_t>(row) * columns + column;
          load(x[a], inp + at);
          load(dy[a], out_grad + at);
          mean[a] = means[row];
          variance[a] = vars[row];
        }
      }
#pragma unroll
      for (int a = 0; a < AHEAD; ++a) {
        const float inverse_sigma = rsqrtf(variance[a] + EPSILON);
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          sum[w] += dy[a][w] * ((x[a][w] - mean[a]) * inverse_sigma);
          sum[4 + w] += dy[a][w];
        }
      }
    }
  }
#pragma unroll
  for (int offset = 16; offset >= LANES; offset /= 2) {
#pragma unroll
    for (int i = 0; i < 8; ++i) sum[i] += __shfl_xor_sync(0xffffffff, sum[i], offset);
  }
  if (threadIdx.x % 32 < LANES) {
#pragma unroll
    for (int i = 0; i < 8; ++i) shared[threadIdx.x / 32][i / 4 * SLAB + threadIdx.x % LANES * 4 + i % 4] = sum[i];
  }
  __syncthreads();
  if (threadIdx.x < 2 * SLAB) {
    float total = 0.0f;
    for (int warp = 0; warp < WARPS; ++warp) total += shared[warp][threadIdx.x];
    const int out = blockIdx.x * SLAB + threadIdx.x % SLAB;
    if (out < columns) (threadIdx.x < SLAB ? gamma_grad : betta_grad)[out] = total;
  }
}

// Column blocks come first: they run longest.
template <int GROUP, int CHUNKS>
__global__ void __launch_bounds__(BW_THREADS, 2)
    ker_ln_bw_split(const float* out_grad, const float* inp, const float* vars, const float* means, int rows,
                    int columns, unsigned column_blocks, const float* gamma, float* inp_grad, float* gamma_grad,
                    float* betta_grad) {
  if (blockIdx.x < column_blocks) {
    sum_columns(gamma_grad, betta_grad, out_grad, inp, vars, means, rows, columns);
    return;
  }
  __shared__ float sums[2][MOST_WARPS];
  const int row = (blockIdx.x - column_blocks) * (BW_THREADS / GROUP) + threadIdx.x / GROUP;
  Piece<CHUNKS> piece = {};
  if (row < rows) load_piece<GROUP>(piece, out_grad, inp, vars, means, row, columns);
  finish_row<GROUP>(piece, gamma, sums, inp_grad, row, rows, columns);
}

// -------------------------------------------------------------------------------------------------------- launchers

template <int GROUP_, int CHUNKS_, bool TWICE_ = false>
struct Bucket {
  static constexpr int GROUP = GROUP_, CHUNKS = CHUNKS_;
  static constexpr bool TWICE = TWICE_;  // forward reads a row again instead of keeping it
};

static unsigned blocks_for(int count, int per_block) {
  return (static_cast<unsigned>(count) + per_block - 1) / per_block;
}

// ln_res = (inp - mean) / sqrt(variance + EPSILON) * scale + bias for each row of inp [batch_size, hidden_dim]; means and
// vars [batch_size] get the mean and the biased variance. hidden_dim is a multiple of 4, at most 8192.
extern "C" void launch_layernorm(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                                 const float* bias, int batch_size, int hidden_dim, cudaStream_t stream) {
  const auto launch = [=](auto bucket) {
    using B = decltype(bucket);
    constexpr int threads = B::GROUP > 128 ? B::GROUP : 128;
    const unsigned blocks = blocks_for(batch_size, threads / B::GROUP);
    ker_layer_norm<B::GROUP, B::CHUNKS, threads, B::TWICE><<<blocks, threads, 0, stream>>>(
        ln_res, vars, means, inp, scale, bias, batch_size, hidden_dim, 1.0f / hidden_dim);
  };
  const auto launch_narrow = [=](auto kernel, int threads) {
    kernel<<<blocks_for(batch_size, threads / 32), threads, 0, stream>>>(inp, batch_size, scale, bias, ln_res, vars, means);
  };
  if (hidden_dim == NARROW && (batch_size < MANY_ROWS || has_wide_bus())) launch_narrow(ker_layer_norm_narrow<128>, 128);
  else if (hidden_dim == NARROW) launch_narrow(ker_layer_norm_narrow<64>, 64);
  else if (hidden_dim <= 32) launch(Bucket<8, 1>{});
  else if (hidden_dim <= 128) launch(Bucket<32, 1>{});
  else if (hidden_dim <= 256) launch(Bucket<32, 2>{});
  else if (hidden_dim <= 512) launch(Bucket<32, 4>{});
  else if (hidden_dim <= 1024) has_wide_bus() ? launch(Bucket<128, 2>{}) : launch(Bucket<256, 1>{});
  else if (hidden_dim <= 2048) launch(Bucket<128, 4>{});
  else if (hidden_dim <= 4096) has_wide_bus() ? launch(Bucket<512, 2, true>{}) : launch(Bucket<512, 2>{});
  else if (hidden_dim <= 8192) launch(Bucket<512, 4>{});
}

// A call's turn at `partials`: it waits for the last call that used them, on whatever stream, and the next waits for it.
// Inside a capture there is nothing to wait for: the graph runs when its owner launches it.
struct Turn {
  static inline cudaEvent_t last_use = nullptr;
  cudaStream_t stream;
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;

  explicit Turn(cudaStream_t on) : stream(on) {
    if (last_use == nullptr) cudaEventCreateWithFlags(&last_use, cudaEventDisableTiming);
    cudaStreamIsCapturing(stream, &capture);
    if (capture == cudaStreamCaptureStatusNone) cudaStreamWaitEvent(stream, last_use, 0);
  }
  ~Turn() {
    if (capture == cudaStreamCaptureStatusNone) cudaEventRecord(last_use, stream);
  }
};

// All arrays as in launch_layernorm; out_grad and inp_grad are [batch_size, hidden_dim], gamma_grad and betta_grad
// [hidden_dim]. betta and stream_2 are part of the signature and not needed.
extern "C" void launch_layernorm_bw(float* gamma_grad, float* betta_grad, float* inp_grad, const float* out_grad,
                                    const float* inp, const float* gamma, const float* /* betta */, const float* vars,
                                    const float* means, int batch_size, int hidden_dim, cudaStream_t stream_1,
                                    cudaStream_t /* stream_2 */) {
  const auto launch = [=](auto bucket) {
    using B = decltype(bucket);
    constexpr int groups = BW_THREADS / B::GROUP;
    const unsigned row_blocks = blocks_for(batch_size, groups);
    if (batch_size <= SPLIT_ROWS && static_cast<long long>(batch_size) * hidden_dim <= SPLIT_ELEMENTS) {
      const unsigned column_blocks = blocks_for(hidden_dim, SLAB);
      ker_ln_bw_split<B::GROUP, B::CHUNKS><<<column_blocks + row_blocks, BW_THREADS, 0, stream_1>>>(
          out_grad, inp, vars, means, batch_size, hidden_dim, column_blocks, gamma, inp_grad, gamma_grad, betta_grad);
      return;
    }
    int device = 0, multiprocessors = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    const unsigned resident = multiprocessors * (B::CHUNKS == 1 ? 2 : 1);
    const unsigned most = MOST_PARTIALS / (2 * hidden_dim);
    unsigned blocks = resident < most ? resident : most;
    if (row_blocks < blocks) blocks = row_blocks;
    const Turn turn(stream_1);
    ker_ln_bw_fused<B::GROUP, B::CHUNKS><<<blocks, BW_THREADS, 0, stream_1>>>(
        out_grad, inp, vars, means, batch_size, hidden_dim, gamma, inp_grad);
    ker_ln_bw_dgamma_dbetta<<<blocks_for(2 * hidden_dim, 32), dim3(32, 32), 0, stream_1>>>(
        gamma_grad, betta_grad, blocks, hidden_dim);
  };
  if (hidden_dim <= 32) launch(Bucket<8, 1>{});
  else if (hidden_dim <= 128) launch(Bucket<32, 1>{});
  else if (hidden_dim <= 256) launch(Bucket<64, 1>{});
  else if (hidden_dim <= 512) launch(Bucket<128, 1>{});
  else if (hidden_dim <= 1024) launch(Bucket<256, 1>{});
  else if (hidden_dim <= 2048) launch(Bucket<512, 1>{});
  else if (hidden_dim <= 4096) launch(Bucket<512, 2>{});
  else if (hidden_dim <= 8192) launch(Bucket<512, 4>{});
}
