// Matrix transpose: each warp takes one tile after the other through shared memory of its own.
#include <cuda_runtime.h>

__global__ void ker_transpose(float* out, const float* matrix, int rows, int columns, int across, int tiles, int* next) {
  __shared__ float tile[4][32][33];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int number = blockIdx.x * 4 + warp;
  while (number < tiles) {
    const long long row0 = number / across * 32LL, column0 = number % across * 32LL;
    for (int r = 0; r < 32; ++r)
      if (row0 + r < rows && column0 + lane < columns) tile[warp][r][lane] = matrix[(row0 + r) * columns + column0 + lane];
    __syncwarp();
    for (int c = 0; c < 32; ++c)
      if (column0 + c < columns && row0 + lane < rows) out[(column0 + c) * rows + row0 + lane] = tile[warp][lane][c];
    if (lane == 0) number = gridDim.x * 4 + atomicAdd(next, 1);
    number = __shfl_sync(0xffffffff, number, 0);
  }
}

extern "C" void launch_transpose(float* out, const float* matrix, int rows, int columns, cudaStream_t stream) {
  const int across = (columns + 31) / 32, tiles = across * ((rows + 31) / 32);
  int* next;
  cudaMallocAsync(&next, sizeof(int), stream);
  cudaMemsetAsync(next, 0, sizeof(int), stream);
  const int blocks = tiles / 8 + 1;
  ker_transpose<<<blocks < 864 ? blocks : 864, 128, 0, stream>>>(out, matrix, rows, columns, across, tiles, next);
  cudaFreeAsync(next, stream);
}
