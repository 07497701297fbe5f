"""A softmax of each row, in CUDA C++ that CuPy compiles.

Idea: a block reads a row once and keeps it in registers, in which each thread turns its elements into powers
and then into quotients. The largest element is taken away before the exponential, so that nothing overflows.

Bytes: 8 per element.

Launch: a block per row, of one warp for short rows and of eight for long ones; each thread has 4 elements, or
16 in rows of more than 1024.
"""

import cupy as cp
import torch

CUDA = r"""
constexpr int warp_size = 32;

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// What all threads of the block get of their values, of which `neutral` changes nothing.
template <int threads, class Combine>
__device__ float combined(float value, float neutral, Combine combine) {
  __shared__ float of_warps[threads / warp_size];
  for (int step = 16; step > 0; step /= 2) value = combine(value, __shfl_xor_sync(~0u, value, step));
  if constexpr (threads > warp_size) {
    const int lane = threadIdx.x % warp_size;
    __syncthreads();  // the last call's values have been read
    if (lane == 0) of_warps[threadIdx.x / warp_size] = value;
    __syncthreads();
    value = lane < threads / warp_size ? of_warps[lane] : neutral;
    for (int step = 16; step > 0; step /= 2) value = combine(value, __shfl_xor_sync(~0u, value, step));
  }
  return value;
}

// Rows of up to threads * each columns.
template <int threads, int each>
__global__ void ker_row_softmax(float* y, const float* x, int columns) {
  y += static_cast<long>(blockIdx.x) * columns;
  x += static_cast<long>(blockIdx.x) * columns;
  float values[each], largest = -INFINITY, total = 0;
  for (int k = 0; k < each; ++k) {
    const int at = k * threads + threadIdx.x;
    values[k] = at < columns ? x[at] : -INFINITY;
    largest = fmaxf(largest, values[k]);
  }
  largest = combined<threads>(largest, -INFINITY, Larger());
  for (int k = 0; k < each; ++k) total += values[k] = expf(values[k] - largest);
  const float share = 1 / combined<threads>(total, 0, Sum());
  for (int k = 0; k < each; ++k) {
    const int at = k * threads + threadIdx.x;
    if (at < columns) y[at] = values[k] * share;
  }
}
"""

INSTANCES = ["ker_row_softmax<32, 4>", "ker_row_softmax<256, 4>", "ker_row_softmax<256, 16>"]
module = cp.RawModule(code=CUDA, options=("--std=c++17",), name_expressions=INSTANCES)
short, middle, long = [module.get_function(name) for name in INSTANCES]


def row_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    kernel, threads = (short, 32) if columns <= 128 else (middle if columns <= 1024 else long, 256)
    kernel((rows,), (threads,), (cp.asarray(y), cp.asarray(x), cp.int32(columns)))
    return y
