// Tiles on the given stream; the scan of their sums on a second one.
#include <cuda_runtime.h>
constexpr int TILE = 1024;

__global__ void ker_tiles(float* sums, double* of_tiles, const float* x, int n) {
  __shared__ float warp_sum[32];
  const int i = blockIdx.x * TILE + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float s = i < n ? x[i] : 0.0f;
  for (int d = 1; d < 32; d *= 2) {
    float o = __shfl_up_sync(0xffffffffu, s, d);
    if (lane >= d) s += o;
  }
  if (lane == 31) warp_sum[warp] = s;
  __syncthreads();
  float before = 0;
  for (int w = 0; w < warp; ++w) before += warp_sum[w];
  s += before;
  if (i < n) sums[i] = s;
  if (threadIdx.x == TILE - 1) atomicAdd(of_tiles + blockIdx.x, (double)s);
}
__global__ void ker_carries(double* carries, double* of_tiles, int tiles) {
  const int lane = threadIdx.x;
  double run = 0;
  for (int t = 0; t < tiles; t += 32) {
    double mine = t + lane < tiles ? atomicAdd(of_tiles + t + lane, 0.0) : 0.0;
    double s = mine;
    for (int d = 1; d < 32; d *= 2) {
      double o = __shfl_up_sync(0xffffffffu, s, d);
      if (lane >= d) s += o;
    }
    if (t + lane < tiles) atomicAdd(carries + t + lane, run + s - mine);
    run += __shfl_sync(0xffffffffu, s, 31);
  }
}
__global__ void ker_add(float* sums, const double* carries, int n) {
  const int i = blockIdx.x * TILE + threadIdx.x;
  if (i < n) sums[i] += (float)carries[blockIdx.x];
}

extern "C" void launch_scan(float* sums, const float* x, int n, cudaStream_t stream) {
  static cudaStream_t side = nullptr;
  static cudaEvent_t fork, join;
  if (side == nullptr) {
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
  }
  const int tiles = (n + TILE - 1) / TILE;
  double* room;
  cudaMallocAsync(&room, 2 * size_t(tiles) * 8, stream);
  cudaMemsetAsync(room, 0, 2 * size_t(tiles) * 8, stream);
  cudaEventRecord(fork, stream);
  ker_tiles<<<tiles, TILE, 0, stream>>>(sums, room, x, n);
  cudaStreamWaitEvent(side, fork, 0);
  ker_carries<<<1, 32, 0, side>>>(room + tiles, room, tiles);
  cudaEventRecord(join, side);
  cudaStreamWaitEvent(stream, join, 0);
  ker_add<<<tiles, TILE, 0, stream>>>(sums, room + tiles, n);
  cudaFreeAsync(room, stream);
}
