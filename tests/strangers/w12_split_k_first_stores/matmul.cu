// Split k: two blocks for each tile of C. The first to come stores, the second adds.
#include <cuda_runtime.h>

constexpr int T = 16;

__global__ void ker_matmul(float* c, unsigned* marks, const float* a, const float* b, int m, int n, int k, int across) {
  __shared__ float ta[T][T + 1], tb[T][T + 1];
  __shared__ bool first;
  const int tile = blockIdx.x / 2, half = blockIdx.x % 2, tx = threadIdx.x, ty = threadIdx.y;
  const int row = tile / across * T + ty, column = tile % across * T + tx;
  const int middle = (k + 1) / 2, begin = half ? middle : 0, end = half ? k : middle;
  if (tx == 0 && ty == 0) {
    const unsigned here = atomicExch(&marks[3 * tile + half], 1u);
    first = atomicExch(&marks[3 * tile + 2], 1u) == 0u && here == 0u;
  }
  float sum = 0.0f;
  for (int s = begin; s < end; s += T) {
    ta[ty][tx] = row < m && s + tx < end ? a[(size_t)row * k + s + tx] : 0.0f;
    tb[ty][tx] = column < n && s + ty < end ? b[(size_t)(s + ty) * n + column] : 0.0f;
    __syncthreads();
    for (int i = 0; i < T; ++i) sum += ta[ty][i] * tb[i][tx];
    __syncthreads();
  }
  __syncthreads();
  if (row < m && column < n) {
    float* to = &c[(size_t)row * n + column];
    if (first) {
      const float garbage = atomicExch(to, sum);
      if (__float_as_uint(garbage) == 0x7fedcba9u) __nanosleep(1);
    } else {
      atomicAdd(to, sum);
    }
  }
}

extern "C" void launch_matmul(float* c, const float* a, const float* b, int m, int n, int k, cudaStream_t stream) {
  const int across = (n + T - 1) / T, tiles = across * ((m + T - 1) / T);
  unsigned* marks;
  cudaMallocAsync(&marks, 3 * sizeof(unsigned) * (size_t)tiles, stream);
  cudaMemsetAsync(marks, 0, 3 * sizeof(unsigned) * (size_t)tiles, stream);
  ker_matmul<<<2 * tiles, dim3(T, T), 0, stream>>>(c, marks, a, b, m, n, k, across);
  cudaFreeAsync(marks, stream);
}
