// How a block scans h_t = a_t h_{t-1} + b_t over its channels, whatever a and b are made of.
//
// A block owns CHANNELS neighbouring channels of one sequence and walks along time in tiles. PAIRS threads side by side
// read two channels each, so that one time step is one contiguous piece of memory: 64 bytes in half precision, the
// least that is worth a trip. Groups of such threads take the tile's time steps, a few neighbouring ones each.
//
// Two steps in a row are again one step, h -> (a2 a1) h + (a2 b1 + b2). So a thread combines its own steps, a warp
// combines those of all 32 groups for one channel by shuffles, and every thread gets the state before its steps.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

constexpr int THREADS = 512, PAIRS = 16, CHANNELS = 2 * PAIRS, GROUPS = THREADS / PAIRS;
constexpr int OF_A_WARP = CHANNELS / (THREADS / 32);  // channels whose states a warp carries from tile to tile
static_assert(GROUPS == 32, "a lane combines the steps of one group");

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T>
__device__ inline T from_float(float x) {
  if constexpr (sizeof(T) == 4)
    return x;
  else
    return T(x);
}

// Two neighbouring elements, packed as they came: in half precision they share a register.
template <class T>
struct Pair {
  using Bits = std::conditional_t<sizeof(T) == 4, uint2, unsigned>;
  Bits bits;

  __device__ float operator[](int channel) const { return to_float(reinterpret_cast<const T*>(&bits)[channel]); }
};

// `columns` of the two channels are there, and zeros instead of the others. With EVEN it is both or none.
template <bool EVEN, class T>
__device__ inline Pair<T> load(const T* from, int columns) {
  Pair<T> pair = {};
  if constexpr (EVEN) {
    if (columns > 0) pair.bits = *reinterpret_cast<const typename Pair<T>::Bits*>(from);
  } else {
    T* element = reinterpret_cast<T*>(&pair.bits);
    if (columns > 0) element[0] = from[0];
    if (columns > 1) element[1] = from[1];
  }
  return pair;
}

template <bool EVEN, class T>
__device__ inline void store(T* to, const float (&value)[2], int columns) {
  if constexpr (EVEN) {
    Pair<T> pair;
    T* element = reinterpret_cast<T*>(&pair.bits);
    element[0] = from_float<T>(value[0]);
    element[1] = from_float<T>(value[1]);
    if (columns > 0) *reinterpret_cast<typename Pair<T>::Bits*>(to) = pair.bits;
  } else {
    if (columns > 0) to[0] = from_float<T>(value[0]);
    if (columns > 1) to[1] = from_float<T>(value[1]);
  }
}

// Which part of an array [batch, length, width] a thread works on.
struct Place {
  int channel, columns, group;  // its first channel, how many there are (0 to 2), its group
  size_t sequence;  // number of the sequence

  __device__ explicit Place(int width) {
    const unsigned slabs = (width + CHANNELS - 1) / CHANNELS;
    sequence = blockIdx.x / slabs;
    channel = blockIdx.x % slabs * CHANNELS + threadIdx.x % PAIRS * 2;
    columns = min(max(width - channel, 0), 2);
    group = threadIdx.x / PAIRS;
  }
};

// Where warps hand states to each other. One more than GROUPS: threads of a warp meet different banks both ways.
struct Exchange {
  float factor[CHANNELS][GROUPS + 1], value[CHANNELS][GROUPS + 1];
};

// The scan over the groups of a tile. A thread brings its steps combined, value = factor * before + value, and gets the
// state before them. `carry` is the state before the tile, of the warp's channels, and becomes that behind it. A thread
// writes and reads cells of its own; only between the two barriers others do.
__device__ inline void scan_groups(Exchange& exchange, const float (&factor)[2], const float (&value)[2],
                                   float (&carry)[OF_A_WARP], float (&before)[2]) {
  const int first = threadIdx.x % PAIRS * 2, group = threadIdx.x / PAIRS;
#pragma unroll
  for (int c = 0; c < 2; ++c) {
    exchange.factor[first + c][group] = factor[c];
    exchange.value[first + c][group] = value[c];
  }
  __syncthreads();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int c = 0; c < OF_A_WARP; ++c) {
    const int channel = warp * OF_A_WARP + c;
    float f = exchange.factor[channel][lane], v = exchange.value[channel][lane];
    if (lane == 0) v += f * carry[c];
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const float earlier_f = __shfl_up_sync(0xffffffff, f, offset);
      const float earlier_v = __shfl_up_sync(0xffffffff, v, offset);
      if (lane >= offset) {
        v += f * earlier_v;
        f *= earlier_f;
      }
    }
    const float earlier = __shfl_up_sync(0xffffffff, v, 1);
    exchange.value[channel][lane] = lane == 0 ? carry[c] : earlier;
    carry[c] = __shfl_sync(0xffffffff, v, 31);
  }
  __syncthreads();
#pragma unroll
  for (int c = 0; c < 2; ++c) before[c] = exchange.value[first + c][group];
}

// The state of the warp's channels before the first step; `start` is [sequences, width], or null for zeros.
__device__ inline void load_carry(float (&carry)[OF_A_WARP], const float* start, const Place& place, int width) {
  const int lowest = place.channel - threadIdx.x % PAIRS * 2 + threadIdx.x / 32 * OF_A_WARP;
#pragma unroll
  for (int c = 0; c < OF_A_WARP; ++c)
    carry[c] = start != nullptr && lowest + c < width ? start[place.sequence * width + lowest + c] : 0.0f;
}
