// How a block scans h_t = a_t h_{t-1} + b_t over its channels, whatever a and b are made of.
//
// A block owns CHANNELS neighbouring channels of one sequence and walks along time in tiles. Each of its warps works on
// STEPS neighbouring steps of a tile, each lane on two channels: a warp's step is one contiguous piece of memory, 128
// bytes in half precision.
//
// The pipeline. Shared memory has room for three tiles, its stages. While one is computed with, the next two are on
// their way: asynchronous copies (cp.async) bring them without a register and without a thread that waits.
//
//   stage 0   tile 0 is used | tile 3 comes   | tile 3 comes   | tile 3 is used | ...
//   stage 1   tile 1 comes   | tile 1 is used | tile 4 comes   | tile 4 comes   | ...
//   stage 2   tile 2 comes   | tile 2 comes   | tile 2 is used | tile 5 comes   | ...
//
// A warp copies what its own lanes read, so it needs no barrier of the block for that: each lane waits for its own
// copies, then the lanes for each other.
//
// The scan. Two steps in a row are again one step, h -> (a2 a1) h + (a2 b1 + b2). So a thread combines its own steps, a
// thread of each channel walks over those of the 16 warps, and every thread gets the state before its steps.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr int THREADS = 512, WARPS = THREADS / 32, CHANNELS = 64;
static_assert(CHANNELS == 2 * 32, "a lane has two channels");

// Two neighbouring elements.
template <class T>
struct alignas(2 * sizeof(T)) Pair {
  T of[2];
};

// `columns` of the two channels are there. With WHOLE it is both or none.
template <bool WHOLE, class T>
__device__ inline void store(T* to, const float (&value)[2], int columns) {
  const Pair<T> pair{{static_cast<T>(value[0]), static_cast<T>(value[1])}};
  if constexpr (WHOLE) {
    if (columns > 0) *reinterpret_cast<Pair<T>*>(to) = pair;
  } else {
    if (columns > 0) to[0] = pair.of[0];
    if (columns > 1) to[1] = pair.of[1];
  }
}

// Which channels of which sequence a thread works on.
struct Place {
  int lowest, channel, columns;  // the block's first channel; the lane's first, and how many of its two there are
  size_t sequence;

  __device__ explicit Place(int width) {
    const unsigned slabs = (width + CHANNELS - 1) / CHANNELS;
    sequence = blockIdx.x / slabs;
    lowest = blockIdx.x % slabs * CHANNELS;
    channel = lowest + threadIdx.x % 32 * 2;
    columns = min(max(width - channel, 0), 2);
  }
};

// ---------------------------------------------------------------------------------------------------- the pipeline

template <class T, int ARRAYS>
struct Arrays {
  const T* of[ARRAYS];
};

// Begins to copy bytes from global to shared memory, and goes on; writes zeros where there is nothing to read.
template <int BYTES>
__device__ inline void copy_async(void* to, const void* from, bool there) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int read = there ? BYTES : 0;
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(read) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from), "r"(read) : "memory");
}

// What a warp hands to the scan over warps: its steps combined. Takes the place of elements that have been read.
struct Cells {
  float factor[CHANNELS], value[CHANNELS];
};

// Tiles of some arrays [length, width] on their way through the stages. With WHOLE, rows are whole pieces of 16 bytes.
// With BACKWARDS the first step is the last in time, and the last array is one step ahead: it is the state before.
template <class T, int ARRAYS, int STEPS, bool WHOLE, bool BACKWARDS>
struct Pipeline {
  static constexpr int LENGTH = WARPS * STEPS;  // steps of a tile
  static constexpr int SHARE = STEPS * CHANNELS, ARRAY = WARPS * SHARE, STAGE = ARRAYS * ARRAY;  // elements
  static constexpr int BYTES = STAGE * sizeof(T);
  static constexpr int PIECE = WHOLE ? 16 / sizeof(T) : 1;  // elements that are copied at once
  static_assert(SHARE * sizeof(T) >= sizeof(Cells), "a warp's share of an array has room for its cells");

  Arrays<T, ARRAYS> from;  // at the block's first channel and the first step
  int length, width, channels;  // of the arrays, and how many of the block's channels there are
  int count, here;  // how many stages there are, and which one is used
  T* stages;

  __device__ Pipeline(const Arrays<T, ARRAYS>& arrays, const Place& place, int length, int width, int count)
      : from(arrays), length(length), width(width), channels(width - place.lowest), count(count), here(count - 1) {
    extern __shared__ __align__(16) unsigned char memory[];
    stages = reinterpret_cast<T*>(memory);
#pragma unroll
    for (int k = 0; k < ARRAYS; ++k) from.of[k] += place.sequence * length * width + place.lowest;
    for (int stage = 0; stage < count - 1; ++stage) ask(stage * LENGTH, stage);
  }

  // Asks for the warp's steps of the tile that begins with step `first`.
  __device__ void ask(int first, int stage) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    T* share = stages + stage * STAGE + warp * SHARE;
#pragma unroll 4
    for (int i = 0; i < SHARE; i += 32 * PIECE) {
      const int element = i + lane * PIECE, column = element % CHANNELS;
      const int step = first + warp * STEPS + element / CHANNELS;
#pragma unroll
      for (int k = 0; k < ARRAYS; ++k) {
        const int time = BACKWARDS ? length - 1 - step - (k == ARRAYS - 1) : step;
        const bool there = time >= 0 && time < length && column < channels;
        const T* source = from.of[k] + (there ? static_cast<size_t>(time) * width + column : 0);
        T* target = share + k * ARRAY + element;
        if constexpr (PIECE * sizeof(T) >= 4)
          copy_async<PIECE * sizeof(T)>(target, source, there);
        else
          *target = there ? *source : T(0.0f);  // two bytes are too few for an asynchronous copy
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }

  // Goes on to the tile that begins with step `first`, and asks for the last one that there is room for.
  __device__ void advance(int first) {
    // This tile was asked for first: with three stages, the copies of one later tile may still be on their way.
    if (count == 3)
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    else
      asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncwarp();  // the copies of all lanes are here, and the stage of the tile before is free
    ask(first + (count - 1) * LENGTH, here);
    here = here + 1 < count ? here + 1 : 0;
  }

  // Two channels of array k in the warp's step s.
  __device__ Pair<T> read(int k, int s) const {
    const T* share = stages + here * STAGE + k * ARRAY + threadIdx.x / 32 * SHARE;
    return *reinterpret_cast<const Pair<T>*>(share + s * CHANNELS + threadIdx.x % 32 * 2);
  }

  // Those of a warp, where its share of the first array was.
  __device__ Cells& cells(int warp) const { return *reinterpret_cast<Cells*>(stages + here * STAGE + warp * SHARE); }
};

// -------------------------------------------------------------------------------------------------------- the scan

// A thread brings its steps combined, h -> factor h + value, and gets the state before them. `carry` of the first
// threads is the state before the tile, of a channel each, and becomes that behind it.
template <class Tiles>
__device__ inline void scan_warps(const Tiles& tiles, const float (&factor)[2], const float (&value)[2], float& carry,
                                  float (&before)[2]) {
  const int first = threadIdx.x % 32 * 2;
  Cells& own = tiles.cells(threadIdx.x / 32);
  __syncwarp();  // all lanes have read their elements
  *reinterpret_cast<float2*>(&own.factor[first]) = make_float2(factor[0], factor[1]);
  *reinterpret_cast<float2*>(&own.value[first]) = make_float2(value[0], value[1]);
  __syncthreads();
  if (threadIdx.x < CHANNELS) {
#pragma unroll
    for (int warp = 0; warp < WARPS; ++warp) {
      Cells& cells = tiles.cells(warp);
      const float f = cells.factor[threadIdx.x], v = cells.value[threadIdx.x];
      cells.value[threadIdx.x] = carry;
      carry = f * carry + v;
    }
  }
  __syncthreads();
  const float2 state = *reinterpret_cast<const float2*>(&own.value[first]);
  before[0] = state.x, before[1] = state.y;
}

// Of `from` [sequences, width] or null for zeros, the channel that the thread carries.
__device__ inline float load_carry(const float* from, const Place& place, int width) {
  const int channel = place.lowest + threadIdx.x;
  const bool there = from != nullptr && threadIdx.x < CHANNELS && channel < width;
  return there ? from[place.sequence * width + channel] : 0.0f;
}
