#include <cuda_runtime.h>

__global__ void ker_int8_product(int* c, const signed char* a, const signed char* b, int m, int n, int k) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  const int* left = reinterpret_cast<const int*>(a + (size_t)row * k);
  const int* right = reinterpret_cast<const int*>(b + (size_t)column * k);
  int sum = 0;
  for (int i = 0; i < k / 4; ++i) sum = __dp4a(left[i], right[i], sum);
  c[(size_t)row * n + column] = sum;
}

extern "C" void launch_int8_product(int* c, const signed char* a, const signed char* b, int m, int n, int k,
                                    cudaStream_t stream) {
  const dim3 block(32, 4), grid((n + 31) / 32, (m + 3) / 4);
  ker_int8_product<<<grid, block, 0, stream>>>(c, a, b, m, n, k);
}
