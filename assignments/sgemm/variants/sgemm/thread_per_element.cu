// One thread for each element of C, which reads a row of A and a column of B.
#include "sgemm.h"

__global__ void multiply(const float* a, const float* b, float* c, int m, int n, int k) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[size_t(row) * k + i] * b[size_t(i) * n + column];
  c[size_t(row) * n + column] = sum;
}

void sgemm(const float* a, const float* b, float* c, int m, int n, int k) {
  multiply<<<dim3((n + 31) / 32, (m + 7) / 8), dim3(32, 8)>>>(a, b, c, m, n, k);
}
