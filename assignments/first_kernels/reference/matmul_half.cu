// Matrix multiplication of half precision, C = A B, added up in float32 and rounded once.
//
// Idea: tensor cores. A warp multiplies 16 x 16 x 16 by one instruction (wmma), from shared memory, and keeps
// the sums in float32. A block of four warps computes 64 x 64 elements of C, each warp 32 x 32 of them, and
// walks along k in steps of 32. Rows in shared memory are padded by 16 bytes, so that the rows of a fragment lie
// in different banks. Loads are 16 bytes wide where every row of the matrix begins at a multiple of that.
//
// Operations: 2 m n k.
//
// Launch: a block of 128 threads per tile of C, all in one dimension of the grid.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

using namespace nvcuda;

constexpr int TILE = 64, STEP = 32, THREADS = 128, PAD = 8;

// ROWS x COLUMNS elements of a matrix of `rows` x `columns`, from `top` and `left` on; zeros where there are none.
template <int ROWS, int COLUMNS>
__device__ void load(__half (*to)[COLUMNS + PAD], const __half* from, int top, int left, int rows, int columns) {
  if (columns % 8 == 0) {
    for (int i = threadIdx.x * 8; i < ROWS * COLUMNS; i += THREADS * 8) {
      const int r = i / COLUMNS, s = i % COLUMNS;
      uint4 eight = make_uint4(0, 0, 0, 0);
      if (top + r < rows && left + s < columns)
        eight = *reinterpret_cast<const uint4*>(from + (size_t)(top + r) * columns + left + s);
      *reinterpret_cast<uint4*>(&to[r][s]) = eight;
    }
    return;
  }
  for (int i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS) {
    const int r = i / COLUMNS, s = i % COLUMNS;
    const bool there = top + r < rows && left + s < columns;
    to[r][s] = there ? from[(size_t)(top + r) * columns + left + s] : __half(0.0f);
  }
}

__global__ void ker_matmul_half(__half* c, const __half* a, const __half* b, int m, int n, int k) {
  __shared__ __align__(32) __half of_a[TILE][STEP + PAD], of_b[STEP][TILE + PAD];
  __shared__ __align__(32) float of_c[TILE][TILE + 4];
  const int across = (n + TILE - 1) / TILE, warp = threadIdx.x / 32;
  const int top = blockIdx.x / across * TILE, left = blockIdx.x % across * TILE;
  const int row = warp / 2 * 32, column = warp % 2 * 32;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
  for (auto& pair : sum)
    for (auto& one : pair) wmma::fill_fragment(one, 0.0f);
  for (int begin = 0; begin < k; begin += STEP) {
    load<TILE, STEP>(of_a, a, top, begin, m, k);
    load<STEP, TILE>(of_b, b, begin, left, k, n);
    __syncthreads();
    for (int s = 0; s < STEP; s += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> down[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right[2];
      for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(down[i], &of_a[row + 16 * i][s], STEP + PAD);
      for (int j = 0; j < 2; ++j) wmma::load_matrix_sync(right[j], &of_b[s][column + 16 * j], TILE + PAD);
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], down[i], right[j], sum[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      wmma::store_matrix_sync(&of_c[row + 16 * i][column + 16 * j], sum[i][j], TILE + 4, wmma::mem_row_major);
  __syncthreads();
  for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
    const int r = i / TILE, s = i % TILE;
    if (top + r < m && left + s < n) c[(size_t)(top + r) * n + left + s] = __float2half(of_c[r][s]);
  }
}

extern "C" void launch_matmul_half(__half* c, const __half* a, const __half* b, int m, int n, int k,
                                   cudaStream_t stream) {
  const int tiles = (m + TILE - 1) / TILE * ((n + TILE - 1) / TILE);
  ker_matmul_half<<<tiles, THREADS, 0, stream>>>(c, a, b, m, n, k);
}
