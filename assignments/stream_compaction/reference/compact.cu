#include "exclusive.cuh"

static __global__ void mark(const int* in, int* places, int n) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) places[i] = in[i] != 0;
}

static __global__ void scatter(const int* in, const int* places, int* out, int n) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n && in[i] != 0) out[places[i]] = in[i];
}

int compact(const int* in, int* out, int n) {
  int *data, *places, *kept, last;
  CHECK(cudaMalloc(&data, n * sizeof(int)));
  CHECK(cudaMalloc(&places, n * sizeof(int)));
  CHECK(cudaMalloc(&kept, n * sizeof(int)));
  CHECK(cudaMemcpy(data, in, n * sizeof(int), cudaMemcpyHostToDevice));
  mark<<<blocks_of(n), BLOCK>>>(data, places, n);
  exclusive(places, n);
  scatter<<<blocks_of(n), BLOCK>>>(data, places, kept, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&last, places + n - 1, sizeof(int), cudaMemcpyDeviceToHost));
  int count = last + (in[n - 1] != 0);
  CHECK(cudaMemcpy(out, kept, count * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(data));
  CHECK(cudaFree(places));
  CHECK(cudaFree(kept));
  return count;
}
