#include <cuda_runtime.h>

__global__ void __launch_bounds__(256) ker_transpose(float* out, const float* matrix, int rows, int columns,
                                                     int across) {
  __shared__ float tile[256];
  const unsigned half = threadIdx.x >> 4, x = threadIdx.x & 15;
  const int r0 = (int)(blockIdx.x / across) * 16, c0 = (int)(blockIdx.x % across) * 16;
  if (r0 + (int)half < rows && c0 + (int)x < columns)
    tile[half * 16 + (x ^ half)] = __ldg(matrix + (long long)(r0 + half) * columns + c0 + x);
  __syncthreads();
  if (c0 + (int)half < columns && r0 + (int)x < rows)
    out[(long long)(c0 + half) * rows + r0 + x] = tile[x * 16 + (half ^ x)];
}

extern "C" void launch_transpose(float* out, const float* matrix, int rows, int columns, cudaStream_t stream) {
  const int across = (columns + 15) / 16;
  const long long tiles = (long long)across * ((rows + 15) / 16);
  ker_transpose<<<(unsigned)tiles, 256, 0, stream>>>(out, matrix, rows, columns, across);
}
