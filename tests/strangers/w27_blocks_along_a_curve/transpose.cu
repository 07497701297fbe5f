#include <cuda_runtime.h>

__device__ inline int even_bits(unsigned v) {
  int r = 0;
  for (int b = 0; b < 16; ++b) r |= ((v >> (2 * b)) & 1) << b;
  return r;
}

// Z order keeps reads and writes of neighbouring blocks near each other.
__global__ void ker_transpose(float* out, const float* matrix, int rows, int columns, int across, int low) {
  __shared__ float tile[32][33];
  int tr, tc;
  if (low >= 0) {
    const unsigned inner = blockIdx.x & ((1u << 2 * low) - 1), outer = blockIdx.x >> 2 * low;
    tr = even_bits(inner >> 1);
    tc = even_bits(inner);
    if (rows > columns) tr |= (int)(outer << (low - (low > 0 && outer > 2)));
    else tc |= (int)(outer << low);
  } else {
    tr = blockIdx.x / across;
    tc = blockIdx.x % across;
  }
  const int c = tc * 32 + threadIdx.x;
  for (int k = threadIdx.y; k < 32; k += 8)
    if (tr * 32 + k < rows && c < columns) tile[k][threadIdx.x] = matrix[(size_t)(tr * 32 + k) * columns + c];
  __syncthreads();
  const int r = tr * 32 + threadIdx.x;
  for (int k = threadIdx.y; k < 32; k += 8)
    if (tc * 32 + k < columns && r < rows) out[(size_t)(tc * 32 + k) * rows + r] = tile[threadIdx.x][k];
}

extern "C" void launch_transpose(float* out, const float* matrix, int rows, int columns, cudaStream_t stream) {
  const int across = (columns + 31) / 32, down = (rows + 31) / 32;
  int low = -1;
  if (((rows & (rows - 1)) | (columns & (columns - 1))) == 0)
    for (low = 0; (2 << low) <= (across < down ? across : down); ++low) {}
  ker_transpose<<<across * down, dim3(32, 8), 0, stream>>>(out, matrix, rows, columns, across, low);
}
