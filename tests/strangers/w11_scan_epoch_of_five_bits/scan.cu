// Chained scan; flags are numbered by call, so nothing has to be cleared.
#include <cuda_runtime.h>
constexpr int TILE = 2048, MOST = (1 << 26) / TILE;

__device__ unsigned flags[MOST];
__device__ float carries[MOST];

__global__ void ker_scan(float* sums, unsigned* ticket, const float* x, int n, unsigned call) {
  __shared__ float warp_sum[8];
  __shared__ int tile_s;
  __shared__ float before_s;
  if (threadIdx.x == 0) tile_s = (int)atomicAdd(ticket, 1u);
  __syncthreads();
  const int tile = tile_s, base = tile * TILE + threadIdx.x * 8, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float v[8];
  for (int k = 0; k < 8; ++k) v[k] = base + k < n ? x[base + k] : 0.0f;
  for (int k = 1; k < 8; ++k) v[k] += v[k - 1];
  float s = v[7];
  for (int d = 1; d < 32; d *= 2) {
    float o = __shfl_up_sync(0xffffffffu, s, d);
    if (lane >= d) s += o;
  }
  if (lane == 31) warp_sum[warp] = s;
  __syncthreads();
  float off = __shfl_up_sync(0xffffffffu, s, 1), whole = 0;
  if (lane == 0) off = 0;
  for (int w = 0; w < 8; ++w) {
    if (w < warp) off += warp_sum[w];
    whole += warp_sum[w];
  }
  if (threadIdx.x == 0) {
    float before = 0;
    if (tile > 0) {
      while (*(volatile unsigned*)(flags + tile - 1) != call) {}
      __threadfence();
      before = *(volatile float*)(carries + tile - 1);
    }
    *(volatile float*)(carries + tile) = before + whole;
    __threadfence();
    *(volatile unsigned*)(flags + tile) = call;
    before_s = before;
  }
  __syncthreads();
  for (int k = 0; k < 8; ++k)
    if (base + k < n) sums[base + k] = before_s + off + v[k];
}

extern "C" void launch_scan(float* sums, const float* x, int n, cudaStream_t stream) {
  static unsigned calls = 0;
  calls = (calls + 1) & 31;
  unsigned* ticket;
  cudaMallocAsync(&ticket, 4, stream);
  cudaMemsetAsync(ticket, 0, 4, stream);
  ker_scan<<<(n + TILE - 1) / TILE, 256, 0, stream>>>(sums, ticket, x, n, calls + 1);
  cudaFreeAsync(ticket, stream);
}
