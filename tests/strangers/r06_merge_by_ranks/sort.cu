#include <cuda_runtime.h>

__global__ void ker_merge(int* to, const int* from, int n, long long width) {
  const long long i = (long long)blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  const int key = from[i];
  const long long begin = i / (2 * width) * (2 * width), middle = min(begin + width, (long long)n), end = min(begin + 2 * width, (long long)n);
  if (middle >= end || from[middle - 1] <= from[middle]) {
    to[i] = key;
    return;
  }
  const bool left = i < middle;
  long long low = left ? middle : begin, high = left ? end : middle;
  const long long first = low;
  while (low < high) {
    const long long m = (low + high) / 2;
    if (left ? from[m] < key : from[m] <= key) low = m + 1;
    else high = m;
  }
  to[begin + (i - (left ? begin : middle)) + (low - first)] = key;
}

extern "C" void launch_sort(int* sorted, const int* keys, int n, cudaStream_t stream) {
  int passes = 0;
  while ((1ll << passes) < n) ++passes;
  const int blocks = (n + 255) / 256;
  if (passes == 0) {
    cudaMemcpyAsync(sorted, keys, sizeof(int), cudaMemcpyDeviceToDevice, stream);
    return;
  }
  int* other;
  cudaMallocAsync(&other, (size_t)n * sizeof(int), stream);
  const int* from = keys;
  for (int p = 0; p < passes; ++p) {
    int* to = (passes - 1 - p) % 2 ? other : sorted;
    ker_merge<<<blocks, 256, 0, stream>>>(to, from, n, 1ll << p);
    from = to;
  }
  cudaFreeAsync(other, stream);
}
