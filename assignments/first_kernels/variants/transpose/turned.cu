// A tile of 16 x 16 without padding: the column of an element is turned by its row.
#include <cuda_runtime.h>

__global__ void ker(float* out, const float* matrix, int rows, int columns, int across) {
  __shared__ float tile[256];
  const int row = threadIdx.x / 16, column = threadIdx.x % 16;
  const int top = blockIdx.x / across * 16, left = blockIdx.x % across * 16;
  if (top + row < rows && left + column < columns)
    tile[row * 16 + (column ^ row)] = matrix[(top + row) * columns + left + column];
  __syncthreads();
  if (left + row < columns && top + column < rows)
    out[(left + row) * rows + top + column] = tile[column * 16 + (row ^ column)];
}

extern "C" void launch_transpose(float* out, const float* matrix, int rows, int columns, cudaStream_t stream) {
  const int down = (rows + 15) / 16, across = (columns + 15) / 16;
  ker<<<down * across, 256, 0, stream>>>(out, matrix, rows, columns, across);
}
