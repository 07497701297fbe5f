// Given: reductions over a warp and over a block, for sums and maxima of several values at once. Nothing to write here.
//
//   float sums[2] = {a, b};
//   block_reduce<Sum, 2>(sums);     // every thread of the block gets both sums over the block
//   warp_reduce<Max, 1>(largest);   // every lane of the warp gets the maximum over the warp
//
// All threads of the block (of the warp) must call them, also those without an element of their own: let those bring a
// value that changes nothing (0 for a sum, REDUCE_MIN for a maximum). The block must consist of whole warps.
#pragma once

constexpr float REDUCE_MIN = -1e38f;  // below any score, and finite: -inf - -inf would be NaN

struct Sum {
  static __device__ float combine(float a, float b) { return a + b; }
  static constexpr float nothing = 0.0f;
};

struct Max {
  static __device__ float combine(float a, float b) { return fmaxf(a, b); }
  static constexpr float nothing = REDUCE_MIN;
};

template <class Op, int N>
__device__ inline void warp_reduce(float* values) {
  for (int offset = 16; offset > 0; offset /= 2)
    for (int n = 0; n < N; ++n)
      values[n] = Op::combine(values[n], __shfl_xor_sync(0xffffffff, values[n], offset));
}

template <class Op, int N>
__device__ inline void block_reduce(float* values) {
  __shared__ float shared[N][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  warp_reduce<Op, N>(values);
  __syncthreads();  // a call before this one may still be reading `shared`
  if (lane == 0)
    for (int n = 0; n < N; ++n) shared[n][warp] = values[n];
  __syncthreads();
  for (int n = 0; n < N; ++n) values[n] = lane < warps ? shared[n][lane] : Op::nothing;
  warp_reduce<Op, N>(values);
}
