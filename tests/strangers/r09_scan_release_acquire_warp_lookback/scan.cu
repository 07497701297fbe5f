#include <cuda_runtime.h>
#include <cuda/atomic>

constexpr int THREADS = 256, EACH = 4, TILE = THREADS * EACH;
// Scans EACH numbers of each thread; returns the sum of the block.
__device__ float scan_tile(float (&v)[EACH], float* of_warps) {
  for (int k = 1; k < EACH; ++k) v[k] += v[k - 1];
  float sum = v[EACH - 1], upto = sum;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int d = 1; d < 32; d *= 2) {
    float o = __shfl_up_sync(0xffffffff, upto, d);
    if (lane >= d) upto += o;
  }
  if (lane == 31) of_warps[warp] = upto;
  __syncthreads();
  float before = 0.0f, all = 0.0f;
  for (int k = 0; k < THREADS / 32; ++k) {
    if (k < warp) before += of_warps[k];
    all += of_warps[k];
  }
  before += upto - sum;
  // upto - sum loses digits: take it from the neighbour instead
  float left = __shfl_up_sync(0xffffffff, upto, 1);
  float base = 0.0f;
  for (int k = 0; k < warp; ++k) base += of_warps[k];
  if (lane > 0) base += left;
  for (int k = 0; k < EACH; ++k) v[k] += base;
  (void)before;
  return all;
}

// Two arrays of values and a word of status with release and acquire; a whole warp looks back.
using Status = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
__global__ void ker(float* sums, const float* x, int n, int tiles, unsigned* status, float* own, float* upto) {
  __shared__ float of_warps[THREADS / 32];
  __shared__ float carry;
  __shared__ unsigned mine;
  if (threadIdx.x == 0) mine = Status(status[tiles]).fetch_add(1, cuda::std::memory_order_relaxed);
  __syncthreads();
  int tile = mine, at = tile * TILE + threadIdx.x * EACH;
  float v[EACH];
  for (int k = 0; k < EACH; ++k) v[k] = at + k < n ? x[at + k] : 0.0f;
  float all = scan_tile(v, of_warps);
  if (threadIdx.x < 32) {
    int lane = threadIdx.x;
    if (lane == 0 && tile > 0) { own[tile] = all; Status(status[tile]).store(1, cuda::std::memory_order_release); }
    float before = 0.0f;
    for (int p = tile - 1 - lane; __any_sync(0xffffffffu, p >= 0); p -= 32) {
      unsigned s = 2;
      float w = 0.0f;
      if (p >= 0) {
        while ((s = Status(status[p]).load(cuda::std::memory_order_acquire)) == 0) {}
        w = s == 2 ? upto[p] : own[p];
      }
      unsigned done = __ballot_sync(0xffffffffu, s == 2 && p >= 0);
      int stop = done ? __ffs(done) - 1 : 31;
      if (lane > stop) w = 0.0f;
      for (int d = 16; d > 0; d /= 2) w += __shfl_xor_sync(0xffffffffu, w, d);
      before += w;
      if (done) break;
    }
    if (lane == 0) { upto[tile] = before + all; Status(status[tile]).store(2, cuda::std::memory_order_release); carry = before; }
  }
  __syncthreads();
  for (int k = 0; k < EACH; ++k)
    if (at + k < n) sums[at + k] = carry + v[k];
}
extern "C" void launch_scan(float* sums, const float* x, int n, cudaStream_t stream) {
  int tiles = (n + TILE - 1) / TILE;
  unsigned* room;
  cudaMallocAsync((void**)&room, (3 * (size_t)tiles + 1) * 4, stream);
  cudaMemsetAsync(room, 0, (tiles + 1) * 4, stream);
  ker<<<tiles, THREADS, 0, stream>>>(sums, x, n, tiles, room, (float*)(room + tiles + 1), (float*)(room + 2 * tiles + 1));
  cudaFreeAsync(room, stream);
}
