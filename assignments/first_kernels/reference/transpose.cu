// Matrix transpose: rows become columns.
//
// Idea: a warp that reads a row writes a column, one number to each of 32 lines of memory. So a block takes a
// square tile through shared memory: it reads rows of the tile and writes rows of its transpose. A row of the
// tile has one element of padding, or a column of it would lie in a single bank.
//
// Bytes: 8 per element.
//
// Launch: a block of 32 x 8 threads per tile of 32 x 32, four elements per thread; one dimension of the grid, as
// y and z end at 65,535 blocks.
#include <cuda_runtime.h>

constexpr int TILE = 32, ROWS = 8;

__global__ void ker_transpose(float* out, const float* matrix, int rows, int columns) {
  __shared__ float tile[TILE][TILE + 1];
  const int across = (columns + TILE - 1) / TILE;
  const int top = blockIdx.x / across * TILE, left = blockIdx.x % across * TILE;
  const int column = left + threadIdx.x;
  for (int k = threadIdx.y; k < TILE; k += ROWS)
    if (top + k < rows && column < columns) tile[k][threadIdx.x] = matrix[(size_t)(top + k) * columns + column];
  __syncthreads();
  const int row = top + threadIdx.x;
  for (int k = threadIdx.y; k < TILE; k += ROWS)
    if (left + k < columns && row < rows) out[(size_t)(left + k) * rows + row] = tile[threadIdx.x][k];
}

extern "C" void launch_transpose(float* out, const float* matrix, int rows, int columns, cudaStream_t stream) {
  const int tiles = (rows + TILE - 1) / TILE * ((columns + TILE - 1) / TILE);
  ker_transpose<<<tiles, dim3(TILE, ROWS), 0, stream>>>(out, matrix, rows, columns);
}
