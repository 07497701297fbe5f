// Inclusive scan in one pass; a warp looks back at 32 tiles at a time.
#include <cuda_runtime.h>

#include <cuda/atomic>

constexpr int THREADS = 256, ITEMS = 8, TILE = THREADS * ITEMS;
using Word = unsigned long long;
using State = cuda::atomic_ref<Word, cuda::thread_scope_device>;
constexpr Word PART = 1ull << 32, PREFIX = 2ull << 32;

__device__ Word pack(Word status, float sum) { return status | __float_as_uint(sum); }

__global__ void ker_scan(float* sums, Word* state, const float* x, int n) {
  __shared__ float of_warps[8], before_tile;
  __shared__ int number;
  if (threadIdx.x == 0) number = static_cast<int>(State(state[0]).fetch_add(1, cuda::memory_order_relaxed));
  __syncthreads();
  Word* of_tiles = state + 1;
  const int tile = number, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
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
  if (warp == 0) {
    if (lane == 0) State(of_tiles[tile]).store(pack(tile ? PART : PREFIX, all), cuda::memory_order_relaxed);
    float sum = 0;
    for (int last = tile - 1; last >= 0; last -= 32) {
      const int mine = last - lane;
      Word word = PREFIX;
      if (mine >= 0)
        while (!((word = State(of_tiles[mine]).load(cuda::memory_order_relaxed)) >> 32)) {
        }
      __syncwarp();
      const unsigned whole = __ballot_sync(0xffffffff, (word >> 32) == 2);
      const int nearest = whole ? __ffs(whole) - 1 : 31;
      float part = lane <= nearest ? __uint_as_float(static_cast<unsigned>(word)) : 0.0f;
      for (int offset = 16; offset > 0; offset /= 2) part += __shfl_xor_sync(0xffffffff, part, offset);
      sum += part;
      if (whole) break;
    }
    if (lane == 0) {
      if (tile) State(of_tiles[tile]).store(pack(PREFIX, sum + all), cuda::memory_order_relaxed);
      before_tile = sum;
    }
  }
  __syncthreads();
  for (int i = 0; i < ITEMS; ++i)
    if (first + i < n) sums[first + i] = before_tile + (before + item[i]);
}

extern "C" void launch_scan(float* sums, const float* x, int n, cudaStream_t stream) {
  const int tiles = (n + TILE - 1) / TILE;
  Word* state;
  cudaMallocAsync(&state, (tiles + 1) * sizeof(Word), stream);
  cudaMemsetAsync(state, 0, (tiles + 1) * sizeof(Word), stream);
  ker_scan<<<tiles, THREADS, 0, stream>>>(sums, state, x, n);
  cudaFreeAsync(state, stream);
}
