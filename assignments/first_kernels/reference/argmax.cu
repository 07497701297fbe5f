// The place of the largest number of a vector; the first one if there are several.
//
// Idea: a reduction of pairs (number, place) under an order in which no two are equal: the larger number is
// better, and of equal numbers the smaller place. Then the order of the reduction does not matter. Each block
// leaves a pair, and a second kernel of one block reduces those.
//
// Bytes: 4 per element.
//
// Launch: at most 1024 blocks of 512 threads, which walk over the vector in loads of 16 bytes; then one block.
#include <cuda_runtime.h>

#include <cmath>

constexpr int THREADS = 512, BLOCKS = 1024;

struct Best {
  float number;
  int place;
};

__device__ Best better(Best a, Best b) {
  return b.number > a.number || (b.number == a.number && b.place < a.place) ? b : a;
}

__device__ Best best_of_warp(Best best) {
  for (int distance = 16; distance > 0; distance /= 2)
    best = better(best, {__shfl_down_sync(0xffffffff, best.number, distance),
                         __shfl_down_sync(0xffffffff, best.place, distance)});
  return best;
}

// The best of all threads of the block, for thread 0.
__device__ Best best_of_block(Best best, Best none) {
  __shared__ Best found[THREADS / 32];
  best = best_of_warp(best);
  if (threadIdx.x % 32 == 0) found[threadIdx.x / 32] = best;
  __syncthreads();
  if (threadIdx.x < 32) best = best_of_warp(threadIdx.x < THREADS / 32 ? found[threadIdx.x] : none);
  return best;
}

__global__ void ker_best(Best* found, const float* x, int n) {
  const int packs = n / 4, step = gridDim.x * THREADS, thread = blockIdx.x * THREADS + threadIdx.x;
  const Best none = {-INFINITY, n};
  Best best = none;
  for (int i = thread; i < packs; i += step) {
    const float4 four = reinterpret_cast<const float4*>(x)[i];
    best = better(best, {four.x, 4 * i});
    best = better(best, {four.y, 4 * i + 1});
    best = better(best, {four.z, 4 * i + 2});
    best = better(best, {four.w, 4 * i + 3});
  }
  if (const int i = 4 * packs + thread; i < n) best = better(best, {x[i], i});
  best = best_of_block(best, none);
  if (threadIdx.x == 0) found[blockIdx.x] = best;
}

__global__ void ker_best_of_blocks(int* place, const Best* found, int blocks, int n) {
  const Best none = {-INFINITY, n};
  Best best = none;
  for (int i = threadIdx.x; i < blocks; i += THREADS) best = better(best, found[i]);
  best = best_of_block(best, none);
  if (threadIdx.x == 0) *place = best.place;
}

extern "C" void launch_argmax(int* place, const float* x, int n, cudaStream_t stream) {
  const int blocks = min((n / 4 + THREADS) / THREADS, BLOCKS);
  Best* found;
  cudaMallocAsync(&found, blocks * sizeof(Best), stream);
  ker_best<<<blocks, THREADS, 0, stream>>>(found, x, n);
  ker_best_of_blocks<<<1, THREADS, 0, stream>>>(place, found, blocks, n);
  cudaFreeAsync(found, stream);
}
