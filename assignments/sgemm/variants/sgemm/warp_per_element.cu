// A warp for each element of C: its lanes share the products and add up their sums by shuffles.
#include "sgemm.h"

__global__ void multiply(const float* a, const float* b, float* c, int m, int n, int k) {
  long long warps = (long long)gridDim.x * (blockDim.x / 32);
  for (long long at = (long long)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; at < (long long)m * n;
       at += warps) {
    long long row = at / n, column = at % n;
    float sum = 0;
    for (int i = threadIdx.x % 32; i < k; i += 32) sum += a[row * k + i] * b[(long long)i * n + column];
    for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffff, sum, half);
    if (threadIdx.x % 32 == 0) c[at] = sum;
  }
}

void sgemm(const float* a, const float* b, float* c, int m, int n, int k) {
  multiply<<<(m * n + 7) / 8, 256>>>(a, b, c, m, n, k);
}
