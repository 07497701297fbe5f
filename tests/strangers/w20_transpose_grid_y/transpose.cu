#include <cuda_runtime.h>

constexpr int T = 32;
__global__ void ker_transpose(float* out, const float* matrix, int rows, int columns) {
  __shared__ float tile[T][T + 1];
  int c = blockIdx.x * T + threadIdx.x, r = blockIdx.y * T;
  for (int k = threadIdx.y; k < T; k += blockDim.y)
    if (r + k < rows && c < columns) tile[k][threadIdx.x] = matrix[(size_t)(r + k) * columns + c];
  __syncthreads();
  c = blockIdx.x * T;
  r += threadIdx.x;
  for (int k = threadIdx.y; k < T; k += blockDim.y)
    if (c + k < columns && r < rows) out[(size_t)(c + k) * rows + r] = tile[threadIdx.x][k];
}
extern "C" void launch_transpose(float* out, const float* matrix, int rows, int columns, cudaStream_t stream) {
  ker_transpose<<<dim3((columns + T - 1) / T, (rows + T - 1) / T), dim3(T, 8), 0, stream>>>(out, matrix, rows, columns);
}
