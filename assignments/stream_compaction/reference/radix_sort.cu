// Least significant bit first: in each pass the elements with a 0 come first, in their order, and then those with a 1.
#include <utility>

#include "exclusive.cuh"

static __global__ void zeros(const int* in, int* places, int bit, int n) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) places[i] = (in[i] >> bit & 1) == (bit == 31);  // of the sign, those with a 1 are smaller
}

static __global__ void split(const int* in, const int* places, int* out, int bit, int n) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i >= n) return;
  bool last_first = (in[n - 1] >> bit & 1) == (bit == 31);
  int total = places[n - 1] + last_first;
  bool first = (in[i] >> bit & 1) == (bit == 31);
  out[first ? places[i] : total + i - places[i]] = in[i];
}

int radix_sort(const int* in, int* out, int n) {
  int *data, *other, *places;
  CHECK(cudaMalloc(&data, n * sizeof(int)));
  CHECK(cudaMalloc(&other, n * sizeof(int)));
  CHECK(cudaMalloc(&places, n * sizeof(int)));
  CHECK(cudaMemcpy(data, in, n * sizeof(int), cudaMemcpyHostToDevice));
  for (int bit = 0; bit < 32; ++bit) {
    zeros<<<blocks_of(n), BLOCK>>>(data, places, bit, n);
    exclusive(places, n);
    split<<<blocks_of(n), BLOCK>>>(data, places, other, bit, n);
    CHECK(cudaGetLastError());
    std::swap(data, other);
  }
  CHECK(cudaMemcpy(out, data, n * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(data));
  CHECK(cudaFree(other));
  CHECK(cudaFree(places));
  return n;
}
