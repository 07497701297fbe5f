#include <cuda/atomic>
#include <cuda_runtime.h>
constexpr int TILE = 512;
using Flag = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

__global__ void ker_scan(float* sums, double* carries, unsigned* flags, unsigned* ticket, const float* x, int n) {
  __shared__ double warp_sum[16];
  __shared__ unsigned tile_s;
  __shared__ double before_s;
  if (threadIdx.x == 0) tile_s = Flag(*ticket).fetch_add(1, cuda::memory_order_relaxed);
  __syncthreads();
  const unsigned tile = tile_s;
  const int i = (int)tile * TILE + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  double s = i < n ? x[i] : 0.0;
  for (int d = 1; d < 32; d *= 2) {
    const double o = __shfl_up_sync(0xffffffffu, s, d);
    if (lane >= d) s += o;
  }
  if (lane == 31) warp_sum[warp] = s;
  __syncthreads();
  for (int w = 0; w < warp; ++w) s += warp_sum[w];
  if (threadIdx.x == TILE - 1) {
    double before = 0;
    if (tile > 0) {
      while (Flag(flags[tile - 1]).load(cuda::memory_order_acquire) == 0) __nanosleep(20);
      before = carries[tile - 1];
    }
    carries[tile] = before + s;
    Flag(flags[tile]).store(1, cuda::memory_order_release);
    before_s = before;
  }
  __syncthreads();
  if (i < n) sums[i] = (float)(before_s + s);
}

extern "C" void launch_scan(float* sums, const float* x, int n, cudaStream_t stream) {
  const size_t tiles = (size_t(n) + TILE - 1) / TILE;
  double* carries;
  unsigned* flags;
  cudaMallocAsync(&carries, tiles * 8, stream);
  cudaMallocAsync(&flags, (tiles + 1) * 4, stream);
  cudaMemsetAsync(flags, 0, (tiles + 1) * 4, stream);
  ker_scan<<<(unsigned)tiles, TILE, 0, stream>>>(sums, carries, flags, flags + tiles, x, n);
  cudaFreeAsync(flags, stream);
  cudaFreeAsync(carries, stream);
}
