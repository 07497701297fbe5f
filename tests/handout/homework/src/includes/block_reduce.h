// Sums and maxima over a block of whole warps; every thread gets the result.
#pragma once
#include "kernels.h"

namespace course {
namespace cuda {

struct Sum {
  static __device__ float of(float a, float b) { return a + b; }
  static __device__ float start() { return 0.0f; }
};
struct Max {
  static __device__ float of(float a, float b) { return fmaxf(a, b); }
  static __device__ float start() { return -INFINITY; }
};

template <class Op>
__device__ float warp_reduce(float x) {
  for (int step = 16; step > 0; step /= 2) x = Op::of(x, __shfl_xor_sync(0xffffffff, x, step));
  return x;
}

template <class Op>
__device__ float block_reduce(float x) {
  __shared__ float slots[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  x = warp_reduce<Op>(x);
  __syncthreads();  // slots of the reduction before
  if (lane == 0) slots[warp] = x;
  __syncthreads();
  return warp_reduce<Op>(lane < warps ? slots[lane] : Op::start());
}
}}
