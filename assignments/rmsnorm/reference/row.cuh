// How threads share one row of any of the three element types.
//
// Memory moves in packs of 16 bytes: 4 elements of float, 8 of __half or __nv_bfloat16. GROUP neighbouring threads (a
// power of two) own a row. Pack c of a thread is number c * GROUP + lane of the row, so that a load of the group is one
// contiguous piece of memory. A row stays in registers as it came, packed: half the registers of a row of floats.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class T>
struct Pack {
  static constexpr int WIDTH = 16 / sizeof(T);
  uint4 bits;
};

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T>
__device__ inline T from_float(float x) {
  if constexpr (sizeof(T) == 4) return x;
  else return T(x);
}

// The nearest number that T can hold.
template <class T>
__device__ inline float rounded(float x) {
  return to_float(from_float<T>(x));
}

template <class T>
__device__ inline void unpack(float (&to)[Pack<T>::WIDTH], const Pack<T>& from) {
  const T* element = reinterpret_cast<const T*>(&from.bits);
#pragma unroll
  for (int i = 0; i < Pack<T>::WIDTH; ++i) to[i] = to_float(element[i]);
}

template <class T>
__device__ inline Pack<T> pack(const float (&from)[Pack<T>::WIDTH]) {
  Pack<T> to;
  T* element = reinterpret_cast<T*>(&to.bits);
#pragma unroll
  for (int i = 0; i < Pack<T>::WIDTH; ++i) element[i] = from_float<T>(from[i]);
  return to;
}

template <class T>
__device__ inline Pack<T> load(const T* from) {
  return {*reinterpret_cast<const uint4*>(from)};
}

template <class T>
__device__ inline void store(T* to, const Pack<T>& from) {
  *reinterpret_cast<uint4*>(to) = from.bits;
}

// Begins to copy 16 bytes to shared memory, past the L1 cache and the registers. Both addresses are multiples of 16.
__device__ inline void copy_async(void* to, const void* from) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

constexpr int MOST_WARPS = 32;

// Waits for the threads of a group alone, so that no group of a block waits for another. Barrier 0 is the block's.
template <int GROUP, int THREADS>
__device__ inline void meet() {
  static_assert(THREADS / GROUP < 16, "a block has 16 barriers");
  if constexpr (GROUP == THREADS) __syncthreads();
  else asm volatile("bar.sync %0, %1;" : : "r"(1 + threadIdx.x / GROUP), "n"(GROUP) : "memory");
}

// Adds `value` over the threads of a group; every thread of the group gets the same bits.
//
// Up to a warp nothing but shuffles. Above, one value per warp goes through `shared` and one barrier, which every thread
// of the group must reach. There is no second barrier: whoever adds again before the next one needs other shared memory.
template <int GROUP, int THREADS>
__device__ inline float sum_over_group(float value, float (&shared)[MOST_WARPS]) {
  constexpr int IN_WARP = GROUP < 32 ? GROUP : 32;
#pragma unroll
  for (int offset = IN_WARP / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
  if constexpr (GROUP > 32) {
    constexpr int WARPS = GROUP / 32;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = warp / WARPS * WARPS;
    if (lane == 0) shared[warp] = value;
    meet<GROUP, THREADS>();
    value = shared[first + lane % WARPS];
#pragma unroll
    for (int offset = WARPS / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
  }
  return value;
}
