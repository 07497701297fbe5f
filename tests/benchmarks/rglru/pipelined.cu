// The linear scan and the RG-LRU with tiles that come by asynchronous copies, some ahead of the one that is worked on.
//
// As in the reference a block owns some channels of a sequence and walks along time. What is different:
//   - Bytes on their way wait in shared memory, two tiles of them, and not in registers: they are asked for before the
//     gates of a tile, and nothing has to be held back while these are computed.
//   - A warp copies the rows that its own threads read, 16 bytes at a time, so that it waits for no other warp.
//   - A thread for each channel scans over the groups, and all gates take few instructions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "gates.cuh"

#ifndef BLOCK
#define BLOCK 512
#define BLOCK_PAIRS 16
#endif

constexpr int THREADS = BLOCK, PAIRS = BLOCK_PAIRS, CHANNELS = 2 * PAIRS, GROUPS = THREADS / PAIRS;
constexpr int OF_A_WARP = 32 / PAIRS;  // groups: two, or one
constexpr int RESIDENT = OF_A_WARP;  // blocks of a multiprocessor, which are 64 channels
constexpr float EIGHT = 8.0f;

// Two neighbouring elements.
template <class T> struct alignas(2 * sizeof(T)) Pair {
  T of[2];
};

template <class T, int ARRAYS> struct Sources {
  const T* of[ARRAYS];
};

template <int BYTES> __device__ inline void copy_async(void* to, const void* from, bool there) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int size = there ? BYTES : 0;  // zeros for the rest
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(size) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from), "r"(size) : "memory");
}

// Tiles of `ARRAYS` arrays, of which a thread works on `STEPS` rows. With `BACKWARDS` the first row is the last step,
// and the last array is one step ahead.
template <class T, int ARRAYS, int STEPS, int STAGES, int COLUMNS, bool BACKWARDS> struct Tiles {
  static constexpr int ROWS = OF_A_WARP * STEPS;  // of a warp
  static constexpr int LENGTH = GROUPS * STEPS, ARRAY = LENGTH * CHANNELS, STAGE = ARRAYS * ARRAY;
  static constexpr int BYTES = STAGES * STAGE * sizeof(T);
  static constexpr int PIECES = CHANNELS / COLUMNS;  // of a row

  T* stages;
  Sources<T, ARRAYS> from;
  int length, width, channel;  // the first of the block's
  int next = 0, here = 0;  // stages

  // Rows of the warp's second group change places in pairs: its threads meet other banks than those of the first.
  __device__ static int placed(int row) { return row ^ (row / STEPS & 1); }

  // Asks for the warp's rows of the tile that begins at row `first`.
  __device__ void ask(int first) {
    const int warp = threadIdx.x / 32 * ROWS;
    T* stage = stages + next * STAGE;
#pragma unroll
    for (int i = 0; i < ROWS * PIECES; i += 32) {
      const int piece = i + threadIdx.x % 32, row = piece / PIECES, column = piece % PIECES * COLUMNS;
      if (ROWS * PIECES % 32 != 0 && piece >= ROWS * PIECES) break;
      const int time = BACKWARDS ? length - 1 - (first + warp + row) : first + warp + row;
      const bool there = time >= 0 && time < length && channel + column < width;
      const int64_t at = there ? static_cast<int64_t>(time) * width + channel + column : 0;
      T* to = stage + (warp + placed(row)) * CHANNELS + column;
#pragma unroll
      for (int k = 0; k < ARRAYS; ++k) {
        const bool ahead = BACKWARDS && k == ARRAYS - 1, read = there && (!ahead || time > 0);
        const T* source = from.of[k] + (read ? at - (ahead ? width : 0) : 0);
        if constexpr (COLUMNS * sizeof(T) >= 4)
          copy_async<COLUMNS * sizeof(T)>(to + k * ARRAY, source, read);
        else
          to[k * ARRAY] = read ? *source : T(0.0f);
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    next = next + 1 < STAGES ? next + 1 : 0;
  }

  // Asks for all tiles but one that stages have room for.
  __device__ void begin() {
#pragma unroll
    for (int n = 0; n < STAGES - 1; ++n) ask(n * LENGTH);
  }

  // Waits for the tile at row `first`, and asks for the last one that there is room for.
  __device__ void advance(int first) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    __syncwarp();
    ask(first + (STAGES - 1) * LENGTH);
  }

  // Two channels of array k in step s of the thread.
  __device__ Pair<T> read(int k, int s) const {
    const int group = threadIdx.x / PAIRS, row = group * STEPS + (s ^ group % OF_A_WARP);
    const T* at = stages + here * STAGE + k * ARRAY + row * CHANNELS + threadIdx.x % PAIRS * 2;
    return *reinterpret_cast<const Pair<T>*>(at);
  }

  __device__ void done() { here = here + 1 < STAGES ? here + 1 : 0; }
};

template <bool WHOLE, class T> __device__ inline void store(T* to, const float (&value)[2], int columns) {
  const Pair<T> pair{{static_cast<T>(value[0]), static_cast<T>(value[1])}};
  if constexpr (WHOLE) {
    if (columns > 0) *reinterpret_cast<Pair<T>*>(to) = pair;
  } else {
    if (columns > 0) to[0] = pair.of[0];
    if (columns > 1) to[1] = pair.of[1];
  }
}

// -------------------------------------------------------------------------------------------------------- the scan

struct Exchange {
  float factor[GROUPS][CHANNELS], value[GROUPS][CHANNELS];
};

// A thread brings its steps combined and gets the state before them. `carry` of the first threads is the state before
// the tile, of a channel each, and becomes that behind it.
__device__ inline void scan_groups(Exchange& exchange, const float (&factor)[2], const float (&value)[2], float& carry,
                                   float (&before)[2]) {
  const int first = threadIdx.x % PAIRS * 2, group = threadIdx.x / PAIRS;
  *reinterpret_cast<float2*>(&exchange.factor[group][first]) = make_float2(factor[0], factor[1]);
  *reinterpret_cast<float2*>(&exchange.value[group][first]) = make_float2(value[0], value[1]);
  __syncthreads();
  if (threadIdx.x < CHANNELS) {
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
      const float f = exchange.factor[g][threadIdx.x], v = exchange.value[g][threadIdx.x];
      exchange.value[g][threadIdx.x] = carry;
      carry = f * carry + v;
    }
  }
  __syncthreads();
  const float2 state = *reinterpret_cast<const float2*>(&exchange.value[group][first]);
  before[0] = state.x, before[1] = state.y;
}

// Which channels of which sequence a thread works on.
struct Place {
  int lowest, channel, columns;  // of the block, of the thread; how many of its two there are
  size_t sequence;

  __device__ explicit Place(int width) {
    const unsigned slabs = (width + CHANNELS - 1) / CHANNELS;
    sequence = blockIdx.x / slabs;
    lowest = blockIdx.x % slabs * CHANNELS;
    channel = lowest + threadIdx.x % PAIRS * 2;
    columns = min(max(width - channel, 0), 2);
  }

  // Of `from` [sequences, width], the number of the channel that the thread scans; 0 where there is none.
  __device__ float scanned(const float* from, int width) const {
    const int one = lowest + threadIdx.x % CHANNELS;
    return from != nullptr && one < width ? from[sequence * width + one] : 0.0f;
  }
};

// 8 softplus(C) of the thread's two channels.
struct Rates {
  float of[2];

  __device__ Rates(const float* c, const Place& place) {
    for (int i = 0; i < 2; ++i) of[i] = i < place.columns ? EIGHT * softplus(c[place.channel + i]) : 0.0f;
  }
};

// What factor and term of a step are made of.
struct Given {
  static constexpr int ARRAYS = 2;

  __device__ Given(const float*, const Place&) {}
  __device__ void operator()(const float (&in)[ARRAYS], int, float& factor, float& added) const {
    factor = in[0], added = in[1];
  }
};

struct Gated {
  static constexpr int ARRAYS = 3;
  Rates rates;

  __device__ Gated(const float* c, const Place& place) : rates(c, place) {}
  __device__ void operator()(const float (&in)[ARRAYS], int channel, float& factor, float& added) const {
    const Decay decay(in[2], rates.of[channel]);
    factor = decay.a, added = decay.s * sigmoid(in[1]) * in[0];
  }
};

template <class T, class Step, int COLUMNS>
using ForwardTiles = Tiles<T, Step::ARRAYS, 256 / static_cast<int>(sizeof(T)) / GROUPS, 3, COLUMNS, false>;

template <class T, class Step, int COLUMNS>
__global__ void __launch_bounds__(THREADS, RESIDENT)
    ker_scan(T* h, Sources<T, Step::ARRAYS> from, const float* c, const float* h0, int length, int width) {
  using All = ForwardTiles<T, Step, COLUMNS>;
  constexpr int STEPS = All::LENGTH / GROUPS;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ Exchange exchange;
  const Place place(width);
  const Step step(c, place);
  const size_t start = place.sequence * length * width;
#pragma unroll
  for (int k = 0; k < Step::ARRAYS; ++k) from.of[k] += start;
  float carry = place.scanned(h0, width);
  All tiles{reinterpret_cast<T*>(memory), from, length, width, place.lowest};
  tiles.begin();
  int first = threadIdx.x / PAIRS * STEPS;
  T* out = h + start + static_cast<size_t>(first) * width + place.channel;
  for (int tile = 0; tile < length; tile += All::LENGTH, first += All::LENGTH) {
    tiles.advance(tile);
    float factor[STEPS][2], added[STEPS][2], product[2] = {1.0f, 1.0f}, value[2] = {}, state[2];
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
      Pair<T> in[Step::ARRAYS];
#pragma unroll
      for (int k = 0; k < Step::ARRAYS; ++k) in[k] = tiles.read(k, s);
#pragma unroll
      for (int channel = 0; channel < 2; ++channel) {
        float wide[Step::ARRAYS];
#pragma unroll
        for (int k = 0; k < Step::ARRAYS; ++k) wide[k] = static_cast<float>(in[k].of[channel]);
        step(wide, channel, factor[s][channel], added[s][channel]);
        value[channel] = factor[s][channel] * value[channel] + added[s][channel];
        product[channel] *= factor[s][channel];
      }
    }
    tiles.done();
    scan_groups(exchange, product, value, carry, state);
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
#pragma unroll
      for (int i = 0; i < 2; ++i) state[i] = factor[s][i] * state[i] + added[s][i];
      store<(COLUMNS > 1)>(out + static_cast<size_t>(s) * width, state, first + s < length ? place.columns : 0);
    }
    out += static_cast<size_t>(All::LENGTH) * width;
  }
}

// -------------------------------------------------------------------------------------------------------- backward

// Of float32 half as many rows where these are 64 channels wide: 160 KiB is what any of these GPUs has for a block.
template <class T> constexpr int BACKWARD_ROWS = sizeof(T) == 4 && OF_A_WARP == 1 ? 32 : 64;
template <class T, int COLUMNS>
using BackwardTiles = Tiles<T, 5, BACKWARD_ROWS<T> / GROUPS, sizeof(T) == 2 ? 3 : 2, COLUMNS, true>;

template <class T, int COLUMNS>
__global__ void __launch_bounds__(THREADS, RESIDENT)
    ker_rglru_bw(T* dx, T* dgx, T* dga, float* dc, float* dh0, Sources<T, 5> from, const float* c, const float* h0,
                 int length, int width) {
  using All = BackwardTiles<T, COLUMNS>;
  constexpr int STEPS = All::LENGTH / GROUPS;
  constexpr bool WHOLE = COLUMNS > 1;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ Exchange exchange;
  const Place place(width);
  const Rates rates(c, place);
  const size_t start = place.sequence * length * width;
#pragma unroll
  for (int k = 0; k < 5; ++k) from.of[k] += start;
  float carry = 0.0f, of_c[2] = {}, first_state[2] = {};
  if (h0 != nullptr) {
    for (int i = 0; i < place.columns; ++i) first_state[i] = h0[place.sequence * width + place.channel + i];
  }
  All tiles{reinterpret_cast<T*>(memory), from, length, width, place.lowest};
  tiles.begin();
  int time = length - 1 - static_cast<int>(threadIdx.x) / PAIRS * STEPS;  // of the thread's first step
  for (int tile = 0; tile < length; tile += All::LENGTH, time -= All::LENGTH) {
    tiles.advance(tile);
    float gradient[STEPS][2], factor[STEPS][2], to_x[STEPS][2], to_gx[STEPS][2], to_q[STEPS][2], to_ga[STEPS][2];
    float product[2] = {1.0f, 1.0f}, value[2] = {}, later[2];
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
      const Pair<T> dh = tiles.read(0, s), x = tiles.read(1, s), gx = tiles.read(2, s), ga = tiles.read(3, s),
                    h = tiles.read(4, s);
      const bool begins = time - s == 0;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const Decay decay(static_cast<float>(ga.of[i]), rates.of[i]);
        const float open = sigmoid(static_cast<float>(gx.of[i])), element = static_cast<float>(x.of[i]);
        const float before = begins ? first_state[i] : static_cast<float>(h.of[i]);
        gradient[s][i] = static_cast<float>(dh.of[i]);
        factor[s][i] = decay.a;
        to_x[s][i] = decay.s * open;
        to_gx[s][i] = to_x[s][i] * element * (1.0f - open);
        to_q[s][i] = decay.a * decay.d * (before - open * element * decay.a * decay.inverse);
        to_ga[s][i] = decay.r - 1.0f;
        value[i] = factor[s][i] * (gradient[s][i] + value[i]);
        product[i] *= factor[s][i];
      }
    }
    tiles.done();
    scan_groups(exchange, product, value, carry, later);
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
      const int columns = time - s >= 0 ? place.columns : 0;
      const size_t at = start + static_cast<size_t>(max(time - s, 0)) * width + place.channel;
      float of_x[2], of_gx[2], of_ga[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float whole = gradient[s][i] + later[i], q = whole * to_q[s][i];
        later[i] = factor[s][i] * whole;
        of_x[i] = whole * to_x[s][i];
        of_gx[i] = whole * to_gx[s][i];
        of_ga[i] = q * to_ga[s][i];
        of_c[i] += q;  // 0 before the first step, where x and h are
      }
      store<WHOLE>(dx + at, of_x, columns);
      store<WHOLE>(dgx + at, of_gx, columns);
      store<WHOLE>(dga + at, of_ga, columns);
      if (time - s == 0) store<false>(dh0 + place.sequence * width + place.channel, later, columns);
    }
  }

  const int group = threadIdx.x / PAIRS;  // whose cells of the exchange are its own until the barrier
  for (int i = 0; i < 2; ++i) exchange.value[group][threadIdx.x % PAIRS * 2 + i] = of_c[i];
  __syncthreads();
  const int channel = place.lowest + threadIdx.x;
  if (threadIdx.x < CHANNELS && channel < width) {
    float sum = 0.0f;
    for (int g = 0; g < GROUPS; ++g) sum += exchange.value[g][threadIdx.x];
    const float whole = softplus(c[channel]), ratio = whole > 0.0f ? sigmoid(c[channel]) / whole : 1.0f;
    atomicAdd(dc + channel, -sum * ratio);
  }
}

// ------------------------------------------------------------------------------------------------------- launchers

template <int BYTES, class Kernel, class... Arguments>
static void launch(Kernel kernel, int batch, int width, cudaStream_t stream, Arguments... arguments) {
  const unsigned blocks = static_cast<unsigned>(batch) * ((static_cast<unsigned>(width) + CHANNELS - 1) / CHANNELS);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
  kernel<<<blocks, THREADS, BYTES, stream>>>(arguments...);
}

// Whether rows hold whole pieces of 16 bytes in every array.
template <class... T> static bool whole(int width, const T*... arrays) {
  return ((width * sizeof(T) % 16 == 0 && reinterpret_cast<uintptr_t>(arrays) % 16 == 0) && ...);
}

template <class Step, class T, class... In>
static void scan(T* h, const float* c, const float* h0, int batch, int length, int width, cudaStream_t stream,
                 const In*... in) {
  constexpr int PIECE = 16 / sizeof(T);
  const Sources<T, Step::ARRAYS> from{{in...}};
  if (whole(width, h, in...))
    launch<ForwardTiles<T, Step, PIECE>::BYTES>(ker_scan<T, Step, PIECE>, batch, width, stream, h, from, c, h0, length,
                                                width);
  else
    launch<ForwardTiles<T, Step, 1>::BYTES>(ker_scan<T, Step, 1>, batch, width, stream, h, from, c, h0, length, width);
}

template <class T>
static void backward(T* dx, T* dgx, T* dga, float* dc, float* dh0, Sources<T, 5> from, const float* c, const float* h0,
                     int batch, int length, int width, cudaStream_t stream) {
  constexpr int PIECE = 16 / sizeof(T);
  cudaMemsetAsync(dc, 0, sizeof(float) * width, stream);
  if (whole(width, dx, dgx, dga, from.of[0], from.of[1], from.of[2], from.of[3], from.of[4]))
    launch<BackwardTiles<T, PIECE>::BYTES>(ker_rglru_bw<T, PIECE>, batch, width, stream, dx, dgx, dga, dc, dh0, from, c,
                                           h0, length, width);
  else
    launch<BackwardTiles<T, 1>::BYTES>(ker_rglru_bw<T, 1>, batch, width, stream, dx, dgx, dga, dc, dh0, from, c, h0,
                                       length, width);
}

#define LAUNCHERS(T, NAME)                                                                                            \
  extern "C" void launch_linear_scan_##NAME(T* h, const T* a, const T* b, const float* h0, int batch, int length,     \
                                            int width, cudaStream_t stream) {                                         \
    scan<Given>(h, nullptr, h0, batch, length, width, stream, a, b);                                                  \
  }                                                                                                                   \
  extern "C" void launch_rglru_forward_##NAME(T* h, const T* x, const T* gx, const T* ga, const float* c,             \
                                              const float* h0, int batch, int length, int width,                      \
                                              cudaStream_t stream) {                                                  \
    scan<Gated>(h, c, h0, batch, length, width, stream, x, gx, ga);                                                   \
  }                                                                                                                   \
  extern "C" void launch_rglru_backward_##NAME(T* dx, T* dgx, T* dga, float* dc, float* dh0, const T* dh, const T* x, \
                                               const T* gx, const T* ga, const float* c, const T* h, const float* h0, \
                                               int batch, int length, int width, cudaStream_t stream) {               \
    backward(dx, dgx, dga, dc, dh0, Sources<T, 5>{{dh, x, gx, ga, h}}, c, h0, batch, length, width, stream);          \
  }
LAUNCHERS(float, float32)
LAUNCHERS(__half, float16)
LAUNCHERS(__nv_bfloat16, bfloat16)
