// RMSNorm over the last axis, forward and backward, in float32, float16 and bfloat16; arithmetic in float32.
//
//   n = x / sqrt(mean(x^2) + epsilon),  y = round(n) * weight        round: to the type of x
//   dx = (g - n * mean(g * n)) / sqrt(mean(x^2) + epsilon)           g = dy * weight
//   dweight = sum over rows of dy * round(n)
//
// What it teaches: with half the bytes per element, a row has half the bytes to keep the memory busy, so every access is
// 16 bytes wide, a row stays packed in registers, and where a block walks over rows the next ones are on their way to
// shared memory while it works on one.
//
//   ker_rms_norm          one pass: the row is read once and stays in registers
//   ker_rms_norm_any      rows that are no whole number of packs: element by element, the second time from the L1 cache
//   ker_rms_bw_fused      resident blocks walk over the rows; a thread always owns the same columns, so that dx and its
//                         share of dweight come from one read; each block leaves one partial sum
//   ker_rms_bw_dweight    adds up the partial sums, in a fixed order: the same bits every time, no atomics
//   ker_rms_bw_split      inputs that fit the L2 cache: some blocks do rows, some columns, side by side in one launch
//   ker_rms_bw_any        dx of rows that are no whole number of packs; ker_rms_bw_columns: their dweight
//
// Bytes moved, for R rows of H elements of S bytes: forward 2 R H S, backward 3 R H S, plus 4 R of the reciprocal roots
// and partial sums of 4 H bytes per block.
//
// Streams: the partial sums live in one buffer of the device; calls on different streams take turns at it through an
// event. A captured graph leaves that to its owner. Like most launchers, these are for one host thread at a time.
//
// Compile: nvcc -O3 --shared -Xcompiler -fPIC -arch=sm_90 -o rmsnorm.so rmsnorm_kernel.cu
#include <cuda_runtime.h>

#include "row.cuh"

// ---------------------------------------------------------------------------------------------------------- forward

// share is 1 / hidden: a division here would branch to its slow path, and the compiler moves no load across a branch.
template <class T, int GROUP, int PACKS, int THREADS>
__global__ void __launch_bounds__(THREADS)
    ker_rms_norm(T* y, float* rstd, const T* x, const T* weight, float epsilon, int rows, int hidden, float share) {
  constexpr int WIDTH = Pack<T>::WIDTH;
  __shared__ float sums[MOST_WARPS];
  const unsigned row = blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP;
  const int lane = threadIdx.x % GROUP;
  // A row past the end has no columns: its threads touch no memory but stay for the shuffles and barriers.
  const int columns = row < static_cast<unsigned>(rows) ? hidden : 0;
  const size_t start = static_cast<size_t>(row) * hidden;

  // The weights come with the row: asked for after the sum, they would be a second trip to memory.
  Pack<T> value[PACKS] = {}, scale[PACKS];
#pragma unroll
  for (int p = 0; p < PACKS; ++p) {
    const int column = (p * GROUP + lane) * WIDTH;
    if (column < columns) {
      value[p] = load(x + start + column);
      scale[p] = load(weight + column);
    }
  }
  __threadfence_block();  // keeps the compiler from moving a load behind the sum
  float sum = 0.0f;
#pragma unroll
  for (int p = 0; p < PACKS; ++p) {
    float element[WIDTH];
    unpack(element, value[p]);
#pragma unroll
    for (int w = 0; w < WIDTH; ++w) sum += element[w] * element[w];
  }
  const float inverse = rsqrtf(sum_over_group<GROUP, THREADS>(sum, sums) * share + epsilon);

  if (lane == 0 && columns > 0) rstd[row] = inverse;
#pragma unroll
  for (int p = 0; p < PACKS; ++p) {
    const int column = (p * GROUP + lane) * WIDTH;
    if (column < columns) {
      float element[WIDTH], factor[WIDTH];
      unpack(element, value[p]);
      unpack(factor, scale[p]);
#pragma unroll
      for (int w = 0; w < WIDTH; ++w) element[w] = rounded<T>(element[w] * inverse) * factor[w];
      store(y + start + column, pack<T>(element));
    }
  }
}

constexpr int FEW_ROWS = 512;  // up to here more warps for each row keep the memory busier
constexpr int ANY_THREADS = 256;

// One block per row.
template <class T>
__global__ void __launch_bounds__(ANY_THREADS)
    ker_rms_norm_any(T* y, float* rstd, const T* x, const T* weight, float epsilon, int hidden) {
  __shared__ float sums[MOST_WARPS];
  const size_t start = static_cast<size_t>(blockIdx.x) * hidden;
  float sum = 0.0f;
  for (int column = threadIdx.x; column < hidden; column += ANY_THREADS) {
    const float element = to_float(x[start + column]);
    sum += element * element;
  }
  const float inverse = rsqrtf(sum_over_group<ANY_THREADS, ANY_THREADS>(sum, sums) / hidden + epsilon);
  if (threadIdx.x == 0) rstd[blockIdx.x] = inverse;
  for (int column = threadIdx.x; column < hidden; column += ANY_THREADS) {
    const float normal = rounded<T>(to_float(x[start + column]) * inverse);
    y[start + column] = from_float<T>(normal * to_float(weight[column]));
  }
}

// --------------------------------------------------------------------------------------------------------- backward

constexpr int FUSED_THREADS = 512;       // of a block, where fewer share a row
constexpr int STAGED_BYTES = 96 << 10;   // of rows on their way: sm_86 has 99 KiB for a block
constexpr int SPLIT_THREADS = 256;
constexpr int SLAB_PACKS = 2;            // of a column block: 32 bytes, the least that memory hands out
constexpr int AHEAD = 2;                 // rows that a thread of a column block has on their way
constexpr int MOST_PARTIALS = 8 << 20;   // floats
constexpr int SPLIT_BYTES = 16 << 20;    // x and dy: stay in any L2 cache that this is meant for
constexpr int SPLIT_ROWS = 8192;         // above, the few column blocks of a narrow input would run too long

__device__ float partials[MOST_PARTIALS];  // per block: H sums of dy * round(n)

// What a thread holds of one row.
template <class T, int PACKS>
struct Piece {
  Pack<T> x[PACKS], dy[PACKS];
  float inverse;
};

template <class T, int GROUP, int PACKS>
__device__ inline void load_piece(Piece<T, PACKS>& piece, const T* dy, const T* x, int row, int columns) {
  const size_t start = static_cast<size_t>(row) * columns;
#pragma unroll
  for (int p = 0; p < PACKS; ++p) {
    const int column = (p * GROUP + threadIdx.x % GROUP) * Pack<T>::WIDTH;
    if (column < columns) {
      piece.x[p] = load(x + start + column);
      piece.dy[p] = load(dy + start + column);
    }
  }
}

// Writes dx of the row. Every thread of the group must come, also those of a row past the end. `weights` gives pack p of
// the thread, which begins at a column.
template <class T, int GROUP, int PACKS, int THREADS, class Weights>
__device__ inline void finish_row(const Piece<T, PACKS>& piece, Weights weights, float (&shared)[MOST_WARPS], T* dx,
                                  int row, int rows, int columns, float share) {
  constexpr int WIDTH = Pack<T>::WIDTH;
  float sum = 0.0f;  // of g * n
#pragma unroll
  for (int p = 0; p < PACKS; ++p) {
    const int column = (p * GROUP + threadIdx.x % GROUP) * WIDTH;
    if (column < columns) {
      float x[WIDTH], dy[WIDTH], factor[WIDTH];
      unpack(x, piece.x[p]);
      unpack(dy, piece.dy[p]);
      unpack(factor, weights(p, column));
#pragma unroll
      for (int w = 0; w < WIDTH; ++w) sum += dy[w] * factor[w] * (x[w] * piece.inverse);
    }
  }
  const float mean = sum_over_group<GROUP, THREADS>(sum, shared) * share;
#pragma unroll
  for (int p = 0; p < PACKS; ++p) {
    const int column = (p * GROUP + threadIdx.x % GROUP) * WIDTH;
    if (row < rows && column < columns) {
      float x[WIDTH], dy[WIDTH], factor[WIDTH], result[WIDTH];
      unpack(x, piece.x[p]);
      unpack(dy, piece.dy[p]);
      unpack(factor, weights(p, column));
#pragma unroll
      for (int w = 0; w < WIDTH; ++w)
        result[w] = (dy[w] * factor[w] - x[w] * piece.inverse * mean) * piece.inverse;
      store(dx + static_cast<size_t>(row) * columns + column, pack<T>(result));
    }
  }
}

// Rows on their way to shared memory, as many as there are stages. A thread copies what it reads itself, so that it waits
// for no other thread. There is none where a single row would be too large.
template <class T, int GROUP, int PACKS, int THREADS>
struct Staged {
  static constexpr int STAGE_BYTES = 2 * PACKS * THREADS * 16, STAGES = STAGED_BYTES / STAGE_BYTES;
  static constexpr int BYTES = STAGES * STAGE_BYTES;
  uint4* slots;  // [STAGES][PACKS][2][THREADS]

  __device__ uint4* slot(int stage, int p, int array) const {
    return slots + ((stage * PACKS + p) * 2 + array) * THREADS + threadIdx.x;
  }

  __device__ void ask(int stage, const T* dy, const T* x, int row, int rows, int columns) const {
    const size_t start = static_cast<size_t>(row) * columns;
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
      const int column = (p * GROUP + threadIdx.x % GROUP) * Pack<T>::WIDTH;
      if (row < rows && column < columns) {
        copy_async(slot(stage, p, 0), x + start + column);
        copy_async(slot(stage, p, 1), dy + start + column);
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }

  // Waits for the row that was asked for first.
  __device__ void take(Piece<T, PACKS>& piece, int stage, int columns) const {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
      if ((p * GROUP + threadIdx.x % GROUP) * Pack<T>::WIDTH < columns) {
        piece.x[p].bits = *slot(stage, p, 0);
        piece.dy[p].bits = *slot(stage, p, 1);
      }
    }
  }
};

// One block per multiprocessor. Its groups take rows by themselves and share one partial sum at the end. With KEPT the
// weights stay in registers; otherwise they are read and unpacked anew for every row, from the L1 cache.
template <class T, int GROUP, int PACKS, int THREADS, bool KEPT>
__global__ void __launch_bounds__(THREADS, 1)
    ker_rms_bw_fused(T* dx, const T* dy, const T* x, const T* weight, const float* rstd, int rows, int columns,
                     float share) {
  using Rows = Staged<T, GROUP, PACKS, THREADS>;
  constexpr int WIDTH = Pack<T>::WIDTH, GROUPS = THREADS / GROUP, STAGES = Rows::STAGES;
  extern __shared__ uint4 slots[];
  __shared__ float sums[2][MOST_WARPS];
  const int stride = gridDim.x * GROUPS;

  Pack<T> scale[PACKS] = {};
  if constexpr (KEPT) {
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
      const int column = (p * GROUP + threadIdx.x % GROUP) * WIDTH;
      if (column < columns) scale[p] = load(weight + column);
    }
  }
  const auto weights = [&](int p, int column) { return KEPT ? scale[p] : load(weight + column); };
  float dweight[PACKS][WIDTH] = {};

  const Rows coming{slots};
  int row = blockIdx.x * GROUPS + threadIdx.x / GROUP;
#pragma unroll
  for (int s = 0; s < STAGES; ++s) coming.ask(s, dy, x, row + s * stride, rows, columns);
  float inverse = row < rows ? rstd[row] : 0.0f;

  // Sums alternate between two buffers, so that one barrier per row is enough (see sum_over_group).
  int turn = 0, stage = 0;
  for (int first = blockIdx.x * GROUPS; first < rows; first += stride, row += stride, turn ^= 1) {
    Piece<T, PACKS> piece = {};
    if (row < rows) {
      if constexpr (STAGES > 0) coming.take(piece, stage, columns);
      else load_piece<T, GROUP>(piece, dy, x, row, columns);
    }
    piece.inverse = inverse;
    inverse = row + stride < rows ? rstd[row + stride] : 0.0f;
    finish_row<T, GROUP, PACKS, THREADS>(piece, weights, sums[turn], dx, row, rows, columns, share);
    if constexpr (STAGES > 0) {
      coming.ask(stage, dy, x, row + STAGES * stride, rows, columns);
      stage = stage + 1 < STAGES ? stage + 1 : 0;
    }
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
      float normal[WIDTH], gradient[WIDTH];
      unpack(normal, piece.x[p]);
      unpack(gradient, piece.dy[p]);
#pragma unroll
      for (int w = 0; w < WIDTH; ++w) dweight[p][w] += gradient[w] * rounded<T>(normal[w] * piece.inverse);
    }
  }

  float* partial = partials + static_cast<size_t>(blockIdx.x) * columns;
  if constexpr (GROUPS > 1) {  // the groups of the block own the same columns
    static_assert(Rows::BYTES >= WIDTH * THREADS * sizeof(float), "sums of the groups have no room");
    const auto lent = reinterpret_cast<float(*)[THREADS]>(slots);  // no row is on its way any more
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
      __syncthreads();
#pragma unroll
      for (int w = 0; w < WIDTH; ++w) lent[w][threadIdx.x] = dweight[p][w];
      __syncthreads();
      for (int i = threadIdx.x; i < WIDTH * GROUP; i += THREADS) {
        const int w = i % WIDTH, lane = i / WIDTH, column = p * WIDTH * GROUP + i;
        float total = 0.0f;
        for (int g = 0; g < GROUPS; ++g) total += lent[w][g * GROUP + lane];
        if (column < columns) partial[column] = total;
      }
    }
  } else {
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
      const int column = (p * GROUP + threadIdx.x) * WIDTH;
      if (column < columns) {
#pragma unroll
        for (int w = 0; w < WIDTH; w += 4)
          *reinterpret_cast<float4*>(partial + column + w) =
              make_float4(dweight[p][w], dweight[p][w + 1], dweight[p][w + 2], dweight[p][w + 3]);
      }
    }
  }
}

// Adds up `count` partial sums: 32 columns per block, 32 threads share a column.
template <class T>
__global__ void __launch_bounds__(1024) ker_rms_bw_dweight(T* dweight, int count, int columns) {
  __shared__ float sums[32][33];  // one more than 32: the transposed read meets 32 different banks
  const int column = blockIdx.x * 32 + threadIdx.x;
  float sum = 0.0f;
  if (column < columns) {
#pragma unroll 4
    for (int i = threadIdx.y; i < count; i += 32) sum += partials[static_cast<size_t>(i) * columns + column];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  float unused[MOST_WARPS];
  const float total = sum_over_group<32, 1024>(sums[threadIdx.x][threadIdx.y], unused);
  const int out = blockIdx.x * 32 + threadIdx.y;
  if (threadIdx.x == 0 && out < columns) dweight[out] = from_float<T>(total);
}

// dweight of SLAB_PACKS packs of columns: as many threads side by side read the 32 bytes of a row.
template <class T, int THREADS>
__device__ inline void sum_columns(T* dweight, const T* dy, const T* x, const float* rstd, int rows, int columns) {
  constexpr int WIDTH = Pack<T>::WIDTH, WARPS = THREADS / 32, STEP = THREADS / SLAB_PACKS;
  __shared__ float shared[WARPS][SLAB_PACKS * WIDTH];
  const int column = (blockIdx.x * SLAB_PACKS + threadIdx.x % SLAB_PACKS) * WIDTH;
  float sum[WIDTH] = {};
  if (column < columns) {
    for (int first = threadIdx.x / SLAB_PACKS; first < rows; first += AHEAD * STEP) {
      Pack<T> normal[AHEAD] = {}, gradient[AHEAD] = {};  // past the end: adds 0
      float inverse[AHEAD] = {};
#pragma unroll
      for (int a = 0; a < AHEAD; ++a) {
        const int row = first + a * STEP;
        if (row < rows) {
          const size_t at = static_cast<size_t>(row) * columns + column;
          normal[a] = load(x + at);
          gradient[a] = load(dy + at);
          inverse[a] = rstd[row];
        }
      }
#pragma unroll
      for (int a = 0; a < AHEAD; ++a) {
        float n[WIDTH], g[WIDTH];
        unpack(n, normal[a]);
        unpack(g, gradient[a]);
#pragma unroll
        for (int w = 0; w < WIDTH; ++w) sum[w] += g[w] * rounded<T>(n[w] * inverse[a]);
      }
    }
  }
#pragma unroll
  for (int offset = 16; offset >= SLAB_PACKS; offset /= 2) {
#pragma unroll
    for (int w = 0; w < WIDTH; ++w) sum[w] += __shfl_xor_sync(0xffffffff, sum[w], offset);
  }
  if (threadIdx.x % 32 < SLAB_PACKS) {
#pragma unroll
    for (int w = 0; w < WIDTH; ++w) shared[threadIdx.x / 32][threadIdx.x % SLAB_PACKS * WIDTH + w] = sum[w];
  }
  __syncthreads();
  if (threadIdx.x < SLAB_PACKS * WIDTH) {
    float total = 0.0f;
    for (int warp = 0; warp < WARPS; ++warp) total += shared[warp][threadIdx.x];
    const int out = blockIdx.x * SLAB_PACKS * WIDTH + threadIdx.x;
    if (out < columns) dweight[out] = from_float<T>(total);
  }
}

// Column blocks come first: they run longest.
template <class T, int GROUP, int PACKS, int THREADS>
__global__ void __launch_bounds__(THREADS)
    ker_rms_bw_split(T* dx, T* dweight, const T* dy, const T* x, const T* weight, const float* rstd, int rows,
                     int columns, float share, unsigned column_blocks) {
  if (blockIdx.x < column_blocks) {
    sum_columns<T, THREADS>(dweight, dy, x, rstd, rows, columns);
    return;
  }
  __shared__ float sums[MOST_WARPS];
  const int row = (blockIdx.x - column_blocks) * (THREADS / GROUP) + threadIdx.x / GROUP;
  Piece<T, PACKS> piece = {};
  if (row < rows) {
    load_piece<T, GROUP>(piece, dy, x, row, columns);
    piece.inverse = rstd[row];
  }
  const auto weights = [&](int, int column) { return load(weight + column); };
  finish_row<T, GROUP, PACKS, THREADS>(piece, weights, sums, dx, row, rows, columns, share);
}

// One block per row.
template <class T>
__global__ void __launch_bounds__(ANY_THREADS)
    ker_rms_bw_any(T* dx, const T* dy, const T* x, const T* weight, const float* rstd, int columns) {
  __shared__ float sums[MOST_WARPS];
  const size_t start = static_cast<size_t>(blockIdx.x) * columns;
  const float inverse = rstd[blockIdx.x];
  float sum = 0.0f;
  for (int column = threadIdx.x; column < columns; column += ANY_THREADS)
    sum += to_float(dy[start + column]) * to_float(weight[column]) * (to_float(x[start + column]) * inverse);
  const float mean = sum_over_group<ANY_THREADS, ANY_THREADS>(sum, sums) / columns;
  for (int column = threadIdx.x; column < columns; column += ANY_THREADS) {
    const float g = to_float(dy[start + column]) * to_float(weight[column]);
    dx[start + column] = from_float<T>((g - to_float(x[start + column]) * inverse * mean) * inverse);
  }
}

// Blocks of 32 x 32 threads walk down their share of the rows, a warp side by side on 32 columns.
template <class T>
__global__ void __launch_bounds__(1024)
    ker_rms_bw_columns(const T* dy, const T* x, const float* rstd, int rows, int columns) {
  __shared__ float sums[32][33];
  const int column = blockIdx.x * 32 + threadIdx.x;
  float sum = 0.0f;
  if (column < columns) {
    for (int row = blockIdx.y * 32 + threadIdx.y; row < rows; row += gridDim.y * 32) {
      const size_t at = static_cast<size_t>(row) * columns + column;
      sum += to_float(dy[at]) * rounded<T>(to_float(x[at]) * rstd[row]);
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  float unused[MOST_WARPS];
  const float total = sum_over_group<32, 1024>(sums[threadIdx.x][threadIdx.y], unused);
  const int out = blockIdx.x * 32 + threadIdx.y;
  if (threadIdx.x == 0 && out < columns) partials[static_cast<size_t>(blockIdx.y) * columns + out] = total;
}

// -------------------------------------------------------------------------------------------------------- launchers

template <int GROUP_, int PACKS_>
struct Bucket {
  static constexpr int GROUP = GROUP_, PACKS = PACKS_;
};

static unsigned blocks_for(int count, int per_block) {
  return (static_cast<unsigned>(count) + per_block - 1) / per_block;
}

template <class T>
static void forward(T* y, float* rstd, const T* x, const T* weight, float epsilon, int rows, int hidden,
                    cudaStream_t stream) {
  const auto launch = [=](auto bucket) {
    using B = decltype(bucket);
    constexpr int threads = B::GROUP > 128 ? B::GROUP : 128;
    ker_rms_norm<T, B::GROUP, B::PACKS, threads><<<blocks_for(rows, threads / B::GROUP), threads, 0, stream>>>(
        y, rstd, x, weight, epsilon, rows, hidden, 1.0f / hidden);
  };
  const int packs = hidden / Pack<T>::WIDTH;
  if (hidden % Pack<T>::WIDTH != 0)
    ker_rms_norm_any<<<rows, ANY_THREADS, 0, stream>>>(y, rstd, x, weight, epsilon, hidden);
  else if (packs <= 8) launch(Bucket<8, 1>{});
  else if (packs <= 32) launch(Bucket<32, 1>{});
  else if (packs <= 64) launch(Bucket<32, 2>{});
  else if (packs <= 128) launch(Bucket<32, 4>{});
  else if (packs <= 256) launch(Bucket<128, 2>{});
  else if (packs <= 512 && rows > FEW_ROWS) launch(Bucket<128, 4>{});
  else if (packs <= 512) launch(Bucket<256, 2>{});
  else if (packs <= 1024) launch(Bucket<512, 2>{});
  else if (packs <= 2048) launch(Bucket<512, 4>{});
  else if constexpr (Pack<T>::WIDTH == 4) launch(Bucket<1024, 4>{});
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

template <class T>
static void add_partials(T* dweight, unsigned count, int hidden, cudaStream_t stream) {
  ker_rms_bw_dweight<<<blocks_for(hidden, 32), dim3(32, 32), 0, stream>>>(dweight, static_cast<int>(count), hidden);
}

template <class T>
static void backward(T* dx, T* dweight, const T* dy, const T* x, const T* weight, const float* rstd, int rows,
                     int hidden, cudaStream_t stream) {
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  const float share = 1.0f / hidden;
  const auto launch = [=](auto bucket) {
    using B = decltype(bucket);
    constexpr int split_threads = B::GROUP > SPLIT_THREADS ? B::GROUP : SPLIT_THREADS;
    constexpr int fused_threads = B::GROUP > SPLIT_THREADS ? B::GROUP : FUSED_THREADS;
    constexpr bool kept = Pack<T>::WIDTH == 8 && B::PACKS <= 2;
    if (rows <= SPLIT_ROWS && 2LL * rows * hidden * static_cast<int>(sizeof(T)) <= SPLIT_BYTES) {
      const unsigned column_blocks = blocks_for(hidden, SLAB_PACKS * Pack<T>::WIDTH);
      const unsigned row_blocks = blocks_for(rows, split_threads / B::GROUP);
      ker_rms_bw_split<T, B::GROUP, B::PACKS, split_threads><<<column_blocks + row_blocks, split_threads, 0, stream>>>(
          dx, dweight, dy, x, weight, rstd, rows, hidden, share, column_blocks);
      return;
    }
    const unsigned most = MOST_PARTIALS / hidden, needed = blocks_for(rows, fused_threads / B::GROUP);
    unsigned blocks = multiprocessors;
    if (most < blocks) blocks = most;
    if (needed < blocks) blocks = needed;
    const Turn turn(stream);
    const auto kernel = ker_rms_bw_fused<T, B::GROUP, B::PACKS, fused_threads, kept>;
    constexpr int staged = Staged<T, B::GROUP, B::PACKS, fused_threads>::BYTES;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, staged);
    kernel<<<blocks, fused_threads, staged, stream>>>(dx, dy, x, weight, rstd, rows, hidden, share);
    add_partials(dweight, blocks, hidden, stream);
  };
  const int packs = hidden / Pack<T>::WIDTH;
  if (hidden % Pack<T>::WIDTH != 0) {
    const unsigned shares = rows < 32 * 128 ? blocks_for(rows, 32) : 128;
    ker_rms_bw_any<<<rows, ANY_THREADS, 0, stream>>>(dx, dy, x, weight, rstd, hidden);
    const Turn turn(stream);
    ker_rms_bw_columns<<<dim3(blocks_for(hidden, 32), shares), dim3(32, 32), 0, stream>>>(dy, x, rstd, rows, hidden);
    add_partials(dweight, shares, hidden, stream);
  } else if (packs <= 8) launch(Bucket<8, 1>{});
  else if (packs <= 32) launch(Bucket<32, 1>{});
  else if (packs <= 64) launch(Bucket<64, 1>{});
  else if (packs <= 128) launch(Bucket<128, 1>{});
  else if (packs <= 256) launch(Bucket<256, 1>{});
  else if (packs <= 512) launch(Bucket<256, 2>{});
  else if (packs <= 1024) launch(Bucket<512, 2>{});
  else if (packs <= 2048) launch(Bucket<512, 4>{});
  else if constexpr (Pack<T>::WIDTH == 4) launch(Bucket<512, 8>{});
}

// x and y are [rows, hidden], weight is [hidden], rstd [rows] gets 1 / sqrt(mean(x^2) + epsilon). hidden: 1 to 16384.
extern "C" void launch_rmsnorm_forward_float32(float* y, float* rstd, const float* x, const float* weight,
                                               float epsilon, int rows, int hidden, cudaStream_t stream) {
  forward(y, rstd, x, weight, epsilon, rows, hidden, stream);
}

extern "C" void launch_rmsnorm_forward_float16(__half* y, float* rstd, const __half* x, const __half* weight,
                                               float epsilon, int rows, int hidden, cudaStream_t stream) {
  forward(y, rstd, x, weight, epsilon, rows, hidden, stream);
}

extern "C" void launch_rmsnorm_forward_bfloat16(__nv_bfloat16* y, float* rstd, const __nv_bfloat16* x,
                                                const __nv_bfloat16* weight, float epsilon, int rows, int hidden,
                                                cudaStream_t stream) {
  forward(y, rstd, x, weight, epsilon, rows, hidden, stream);
}

// dy and dx are [rows, hidden], dweight is [hidden]; x, weight and rstd as in forward.
extern "C" void launch_rmsnorm_backward_float32(float* dx, float* dweight, const float* dy, const float* x,
                                                const float* weight, const float* rstd, int rows, int hidden,
                                                cudaStream_t stream) {
  backward(dx, dweight, dy, x, weight, rstd, rows, hidden, stream);
}

extern "C" void launch_rmsnorm_backward_float16(__half* dx, __half* dweight, const __half* dy, const __half* x,
                                                const __half* weight, const float* rstd, int rows, int hidden,
                                                cudaStream_t stream) {
  backward(dx, dweight, dy, x, weight, rstd, rows, hidden, stream);
}

extern "C" void launch_rmsnorm_backward_bfloat16(__nv_bfloat16* dx, __nv_bfloat16* dweight, const __nv_bfloat16* dy,
                                                 const __nv_bfloat16* x, const __nv_bfloat16* weight,
                                                 const float* rstd, int rows, int hidden, cudaStream_t stream) {
  backward(dx, dweight, dy, x, weight, rstd, rows, hidden, stream);
}
