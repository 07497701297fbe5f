// CUB's block reduction, a block per row, of a warp where that is enough, the row in registers.
#include <cub/block/block_reduce.cuh>
#include <cuda_runtime.h>

struct Largest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

struct Total {
  __device__ float operator()(float a, float b) const { return a + b; }
};

template <int THREADS, int MOST>
__global__ void softmax(float* inp, const float* mask, int per_mask, int queries, int keys, bool future) {
  using Reduce = cub::BlockReduce<float, THREADS>;
  __shared__ typename Reduce::TempStorage first, second;
  __shared__ float largest, sum;
  const int row = blockIdx.x;
  float* x = inp + (size_t)row * keys;
  const float* added = mask ? mask + (size_t)(row / per_mask) * keys : nullptr;
  const int visible = future ? min(keys, row % queries + 1) : keys;
  float held[MOST], local = -INFINITY;
  for (int i = 0; i < MOST; ++i) {
    const int j = i * THREADS + threadIdx.x;
    held[i] = j < visible ? x[j] + (added ? added[j] : 0.0f) : -INFINITY;
    local = fmaxf(local, held[i]);
  }
  local = Reduce(first).Reduce(local, Largest{});
  if (threadIdx.x == 0) largest = local;
  __syncthreads();
  local = 0.0f;
  for (int i = 0; i < MOST; ++i) local += held[i] = expf(held[i] - largest);
  local = Reduce(second).Reduce(local, Total{});
  if (threadIdx.x == 0) sum = local + 1e-8f;
  __syncthreads();
  for (int i = 0; i < MOST; ++i) {
    const int j = i * THREADS + threadIdx.x;
    if (j < keys) x[j] = held[i] / sum;
  }
}

extern "C" void launch_attn_softmax(float* inp, const float* attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  const bool warp = to_len <= 32;
  const auto kernel = warp ? softmax<32, 1> : softmax<256, 2048 / 256>;
  kernel<<<batch_size * nhead * from_len, warp ? 32 : 256, 0, stream>>>(inp, attn_mask, nhead * from_len, from_len,
                                                                        to_len, mask_future);
}
