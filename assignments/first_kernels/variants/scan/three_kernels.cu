// Sums of tiles, a scan of those by one block, a scan of each tile that begins with what is before it.
#include <cuda_runtime.h>

constexpr int THREADS = 256, TILE = 1024;

// The scan of one value per thread over the block (Hillis and Steele), and the sum of all.
__device__ float scanned(float value, float* whole) {
  __shared__ float part[THREADS];
  __syncthreads();
  part[threadIdx.x] = value;
  for (int distance = 1; distance < THREADS; distance *= 2) {
    __syncthreads();
    const float before = threadIdx.x >= distance ? part[threadIdx.x - distance] : 0.0f;
    __syncthreads();
    part[threadIdx.x] += before;
  }
  __syncthreads();
  *whole = part[THREADS - 1];
  return part[threadIdx.x];
}

__global__ void ker_sums(float* of_tiles, const float* x, int n) {
  float sum = 0.0f, whole;
  for (int k = 0; k < TILE / THREADS; ++k) {
    const int i = blockIdx.x * TILE + threadIdx.x * (TILE / THREADS) + k;
    if (i < n) sum += x[i];
  }
  scanned(sum, &whole);
  if (threadIdx.x == 0) of_tiles[blockIdx.x] = whole;
}

__global__ void ker_before(float* of_tiles, int tiles) {
  float before = 0.0f;
  for (int begin = 0; begin < tiles; begin += THREADS) {
    const int i = begin + threadIdx.x;
    const float value = i < tiles ? of_tiles[i] : 0.0f;
    float whole;
    const float upto = scanned(value, &whole);
    if (i < tiles) of_tiles[i] = before + upto;
    before += whole;
  }
}

__global__ void ker_scan(float* sums, const float* of_tiles, const float* x, int n) {
  const int begin = blockIdx.x * TILE + threadIdx.x * (TILE / THREADS);
  float part[TILE / THREADS], sum = 0.0f, whole;
  for (int k = 0; k < TILE / THREADS; ++k) part[k] = sum += begin + k < n ? x[begin + k] : 0.0f;
  const float upto = scanned(sum, &whole);
  __shared__ float ends[THREADS];
  ends[threadIdx.x] = upto;
  __syncthreads();
  const float before =
      (blockIdx.x > 0 ? of_tiles[blockIdx.x - 1] : 0.0f) + (threadIdx.x > 0 ? ends[threadIdx.x - 1] : 0.0f);
  for (int k = 0; k < TILE / THREADS; ++k)
    if (begin + k < n) sums[begin + k] = before + part[k];
}

extern "C" void launch_scan(float* sums, const float* x, int n, cudaStream_t stream) {
  const int tiles = (n + TILE - 1) / TILE;
  float* of_tiles;
  cudaMallocAsync(&of_tiles, tiles * sizeof(float), stream);
  ker_sums<<<tiles, THREADS, 0, stream>>>(of_tiles, x, n);
  ker_before<<<1, THREADS, 0, stream>>>(of_tiles, tiles);
  ker_scan<<<tiles, THREADS, 0, stream>>>(sums, of_tiles, x, n);
  cudaFreeAsync(of_tiles, stream);
}
