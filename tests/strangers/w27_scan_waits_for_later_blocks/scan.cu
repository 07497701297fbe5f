// Inclusive scan in one pass: each tile waits for the sum of all before it. Work begins at the end of the vector, whose
// last elements are still in the cache from whoever has written it.
#include <cuda_runtime.h>

constexpr int THREADS = 256, ITEMS = 16, TILE = THREADS * ITEMS;

__global__ void ker_scan(float* sums, unsigned long long* state, const float* x, int n) {
  __shared__ float of_warps[8], before_tile;
  const int tile = gridDim.x - 1 - blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long long first = static_cast<long long>(tile) * TILE + threadIdx.x * ITEMS;
  float item[ITEMS], run = 0;
  for (int i = 0; i < ITEMS; ++i) item[i] = run += first + i < n ? x[first + i] : 0.0f;
  float up = run;
  for (int offset = 1; offset < 32; offset *= 2) {
    const float other = __shfl_up_sync(0xffffffff, up, offset);
    if (lane >= offset) up += other;
  }
  if (lane == 31) of_warps[warp] = up;
  __syncthreads();
  float before = up - run, all = 0;
  for (int w = 0; w < 8; ++w) {
    if (w < warp) before += of_warps[w];
    all += of_warps[w];
  }
  if (threadIdx.x == 0) {
    unsigned long long word = 1ull << 32;
    if (tile > 0)
      while (((word = *static_cast<volatile unsigned long long*>(state + tile - 1)) >> 32) == 0) {
      }
    const float sum = __uint_as_float(static_cast<unsigned>(word));
    *static_cast<volatile unsigned long long*>(state + tile) = 1ull << 32 | __float_as_uint(sum + all);
    before_tile = sum;
  }
  __syncthreads();
  for (int i = 0; i < ITEMS; ++i)
    if (first + i < n) sums[first + i] = before_tile + before + item[i];
}

extern "C" void launch_scan(float* sums, const float* x, int n, cudaStream_t stream) {
  const int tiles = (n + TILE - 1) / TILE;
  unsigned long long* state;
  cudaMallocAsync(&state, tiles * sizeof *state, stream);
  cudaMemsetAsync(state, 0, tiles * sizeof *state, stream);
  ker_scan<<<tiles, THREADS, 0, stream>>>(sums, state, x, n);
  cudaFreeAsync(state, stream);
}
