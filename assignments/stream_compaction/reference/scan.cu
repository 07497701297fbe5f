#include "exclusive.cuh"

int scan(const int* in, int* out, int n) {
  int* data;
  CHECK(cudaMalloc(&data, n * sizeof(int)));
  CHECK(cudaMemcpy(data, in, n * sizeof(int), cudaMemcpyHostToDevice));
  exclusive(data, n);
  CHECK(cudaMemcpy(out, data, n * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(data));
  return n;
}
