#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

using namespace nvcuda;

__global__ void ker_tensor_cores(float* c, const __half* a, const __half* b, int n, int k) {
  const int row = blockIdx.y * 16, column = blockIdx.x * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int step = 0; step < k; step += 16) {
    wmma::load_matrix_sync(left, a + (size_t)row * k + step, k);
    wmma::load_matrix_sync(right, b + (size_t)step * n + column, n);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(c + (size_t)row * n + column, sum, n, wmma::mem_row_major);
}

extern "C" void launch_tensor_cores(float* c, const __half* a, const __half* b, int m, int n, int k,
                                    cudaStream_t stream) {
  ker_tensor_cores<<<dim3(n / 16, m / 16), 32, 0, stream>>>(c, a, b, n, k);
}
