// How threads share one row: the part that softmax and LayerNorm have in common.
//
// GROUP neighbouring threads (a power of two) own a row and keep it in registers. Chunk c of a thread begins at element
// (c * GROUP + lane) * WIDTH, so a load of the group is one contiguous piece of memory and every thread has several
// independent loads in flight. WIDTH is 4 (one 16-byte access) where rows are 16-byte aligned, else 1.
#pragma once

__device__ inline void unpack(float (&to)[4], float4 from) {
  to[0] = from.x;
  to[1] = from.y;
  to[2] = from.z;
  to[3] = from.w;
}

__device__ inline void load(float (&to)[4], const float* from) { unpack(to, *reinterpret_cast<const float4*>(from)); }

__device__ inline void load(float (&to)[1], const float* from) { to[0] = *from; }

__device__ inline void store(float* to, const float (&from)[4]) {
  *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
}

__device__ inline void store(float* to, const float (&from)[1]) { *to = from[0]; }

// Lines that leave the caches before others do.
__device__ inline void load_first_to_leave(float (&to)[4], const float* from) {
  unpack(to, __ldcs(reinterpret_cast<const float4*>(from)));
}

__device__ inline void load_first_to_leave(float (&to)[1], const float* from) { load(to, from); }

__device__ inline void store_first_to_leave(float* to, const float (&from)[4]) {
  __stcs(reinterpret_cast<float4*>(to), make_float4(from[0], from[1], from[2], from[3]));
}

__device__ inline void store_first_to_leave(float* to, const float (&from)[1]) { store(to, from); }

// A line that stays in the L2 while others leave. No built-in function says that, so the load is given a policy.
__device__ inline void load_last_to_leave(float (&to)[4], const float* from) {
  asm volatile(
      "{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0;"
      "  ld.global.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], policy; }"
      : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
      : "l"(from));
}

__device__ inline void load_last_to_leave(float (&to)[1], const float* from) { load(to, from); }

// A line that is read twice: the first time it stays in both caches, the second time it leaves them.
__device__ inline void load_to_load_again(float (&to)[4], const float* from) {
  asm volatile(
      "{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0;"
      "  ld.global.L1::evict_last.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], policy; }"
      : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
      : "l"(from));
}

__device__ inline void load_again(float (&to)[4], const float* from) {
  asm volatile(
      "{ .reg .b64 policy; createpolicy.fractional.L2::evict_first.b64 policy, 1.0;"
      "  ld.global.L1::evict_first.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], policy; }"
      : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
      : "l"(from));
}

// Asks for the line that holds an element, so that it is in the L2 by the time another block loads it.
__device__ inline void prefetch(const float* from) { asm volatile("prefetch.global.L2 [%0];" ::"l"(from)); }

__device__ inline void prefetch_last_to_leave(const float* from) {
  asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(from));
}

// Whether more bits leave the memory at a time than on an H100, as on an H200 (6144). How many threads are best for a row, and
// how many rows are best asked for ahead, is not the same there: measured, not derived.
static bool has_wide_bus() {
  constexpr int H100_BITS = 5120;
  int device = 0, bits = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, device);
  return bits > H100_BITS;
}

struct Sum {
  static __device__ float combine(float a, float b) { return a + b; }
};

struct Max {
  static __device__ float combine(float a, float b) { return fmaxf(a, b); }
};

constexpr int MOST_WARPS = 32;

// Combines N values over the threads of a group; every thread of the group gets the same bits.
//
// Up to a warp nothing but shuffles: no shared memory, no barrier. Above, one value per warp goes through `shared` and
// one barrier, which every thread of the block must reach. There is no second barrier: whoever reduces again before
// the next barrier needs other shared memory, or a fast warp overwrites what a slow one has yet to read.
template <class Op, int GROUP, int N>
__device__ inline void reduce(float (&value)[N], float (&shared)[N][MOST_WARPS]) {
  constexpr int IN_WARP = GROUP < 32 ? GROUP : 32;
#pragma unroll
  for (int offset = IN_WARP / 2; offset > 0; offset /= 2) {
#pragma unroll
    for (int n = 0; n < N; ++n)
      value[n] = Op::combine(value[n], __shfl_xor_sync(0xffffffff, value[n], offset));
  }
  if constexpr (GROUP > 32) {
    constexpr int WARPS = GROUP / 32;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = warp / WARPS * WARPS;
    if (lane == 0) {
#pragma unroll
      for (int n = 0; n < N; ++n) shared[n][warp] = value[n];
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < N; ++n) value[n] = shared[n][first + lane % WARPS];
#pragma unroll
    for (int offset = WARPS / 2; offset > 0; offset /= 2) {
#pragma unroll
      for (int n = 0; n < N; ++n)
        value[n] = Op::combine(value[n], __shfl_xor_sync(0xffffffff, value[n], offset));
    }
  }
}
