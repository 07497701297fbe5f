// A block for 128 rows: all threads fetch products side by side into shared memory, then each adds up those of its row.
#include <cuda_runtime.h>

constexpr int ROWS = 128, PIECE = 1024;

__global__ void ker(float* y, const float* values, const int* columns, const int* starts, const float* x, int rows) {
  __shared__ float products[PIECE];
  const int first = blockIdx.x * ROWS, row = first + threadIdx.x;
  const int end = starts[min(first + ROWS, rows)];
  const int mine = row < rows ? starts[row] : end, next = row < rows ? starts[row + 1] : end;
  float sum = 0.0f;
  for (int piece = starts[first]; piece < end; piece += PIECE) {
    const int count = min(PIECE, end - piece);
    for (int i = threadIdx.x; i < count; i += ROWS) products[i] = values[piece + i] * x[columns[piece + i]];
    __syncthreads();
    for (int k = max(mine, piece); k < min(next, piece + count); ++k) sum += products[k - piece];
    __syncthreads();
  }
  if (row < rows) y[row] = sum;
}

extern "C" void launch_spmv(float* y, const float* values, const int* columns, const int* starts, const float* x,
                            int rows, int width, int entries, cudaStream_t stream) {
  ker<<<(rows + ROWS - 1) / ROWS, ROWS, 0, stream>>>(y, values, columns, starts, x, rows);
}
