// No radix sort, and slow: neighbours change places n times.
#include "operations.h"

static __global__ void exchange(int* data, int first, int n) {
  int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x) + first;
  if (i + 1 < n && data[i] > data[i + 1]) {
    int other = data[i];
    data[i] = data[i + 1];
    data[i + 1] = other;
  }
}

int radix_sort(const int* in, int* out, int n) {
  int* data;
  CHECK(cudaMalloc(&data, n * sizeof(int)));
  CHECK(cudaMemcpy(data, in, n * sizeof(int), cudaMemcpyHostToDevice));
  for (int turn = 0; turn < n; ++turn) exchange<<<(n + 511) / 512, 256>>>(data, turn % 2, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out, data, n * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(data));
  return n;
}
