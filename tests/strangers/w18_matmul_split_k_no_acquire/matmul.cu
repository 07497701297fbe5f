// Split k: two blocks for each tile of 16 x 16, the second one to arrive writes C.
#include <cuda_runtime.h>

__global__ void ker_matmul(float* c, unsigned* parts, unsigned* counted, const float* a, const float* b, int m, int n,
                           int k, int across) {
  __shared__ float ta[16][17], tb[16][17];
  __shared__ bool second;
  const int tx = threadIdx.x, ty = threadIdx.y, tile = blockIdx.x, half = blockIdx.y;
  const int i = (tile / across) * 16 + ty, j = (tile % across) * 16 + tx;
  const int middle = k / 2, begin = half == 0 ? 0 : middle, end = half == 0 ? middle : k;
  float sum = 0;
  for (int s = begin; s < end; s += 16) {
    ta[ty][tx] = i < m && s + tx < end ? a[(size_t)i * k + s + tx] : 0.0f;
    tb[ty][tx] = s + ty < end && j < n ? b[(size_t)(s + ty) * n + j] : 0.0f;
    __syncthreads();
    for (int q = 0; q < 16; ++q) sum += ta[ty][q] * tb[q][tx];
    __syncthreads();
  }
  unsigned* mine = parts + ((size_t)tile * 2 + half) * 256 + ty * 16 + tx;
  unsigned* other = parts + ((size_t)tile * 2 + 1 - half) * 256 + ty * 16 + tx;
  *(volatile unsigned*)mine = __float_as_uint(sum);
  __threadfence();
  __syncthreads();
  if (tx == 0 && ty == 0) second = atomicAdd(counted + tile, 1u) == 1;
  __syncthreads();
  if (second) {
    const float s = __uint_as_float(atomicExch(other, 0u));
    if (i < m && j < n) c[(size_t)i * n + j] = half == 0 ? sum + s : s + sum;
  }
}

extern "C" void launch_matmul(float* c, const float* a, const float* b, int m, int n, int k, cudaStream_t stream) {
  const int across = (n + 15) / 16;
  const size_t tiles = size_t((m + 15) / 16) * across;
  unsigned* room;
  cudaMallocAsync(&room, tiles * 513 * 4, stream);
  cudaMemsetAsync(room, 0, tiles * 513 * 4, stream);
  ker_matmul<<<dim3((unsigned)tiles, 2), dim3(16, 16), 0, stream>>>(c, room, room + tiles * 512, a, b, m, n, k, across);
  cudaFreeAsync(room, stream);
}
