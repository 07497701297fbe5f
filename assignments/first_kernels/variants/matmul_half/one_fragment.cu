// A warp per 16 x 16 elements of C, one fragment at a time by way of shared memory.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

using namespace nvcuda;

__global__ void ker(__half* c, const __half* a, const __half* b, int m, int n, int k) {
  __shared__ __align__(32) __half of_a[256], of_b[256];
  __shared__ __align__(32) float of_c[256];
  const int across = (n + 15) / 16, top = blockIdx.x / across * 16, left = blockIdx.x % across * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> down;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int begin = 0; begin < k; begin += 16) {
    for (int i = threadIdx.x; i < 256; i += 32) {
      const int r = i / 16, s = i % 16;
      of_a[i] = top + r < m && begin + s < k ? a[(size_t)(top + r) * k + begin + s] : __half(0.0f);
      of_b[i] = begin + r < k && left + s < n ? b[(size_t)(begin + r) * n + left + s] : __half(0.0f);
    }
    __syncwarp();
    wmma::load_matrix_sync(down, of_a, 16);
    wmma::load_matrix_sync(right, of_b, 16);
    wmma::mma_sync(sum, down, right, sum);
    __syncwarp();
  }
  wmma::store_matrix_sync(of_c, sum, 16, wmma::mem_row_major);
  __syncwarp();
  for (int i = threadIdx.x; i < 256; i += 32)
    if (top + i / 16 < m && left + i % 16 < n) c[(size_t)(top + i / 16) * n + left + i % 16] = __float2half(of_c[i]);
}

extern "C" void launch_matmul_half(__half* c, const __half* a, const __half* b, int m, int n, int k,
                                   cudaStream_t stream) {
  ker<<<(m + 15) / 16 * ((n + 15) / 16), 32, 0, stream>>>(c, a, b, m, n, k);
}
