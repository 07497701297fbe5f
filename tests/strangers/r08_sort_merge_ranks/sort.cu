#include <cuda_runtime.h>

// Each key finds its place in the merged pair of runs by a binary search in the other run: no shared memory, no barrier.
__device__ __forceinline__ int below(const int* a, int count, int key, bool also_equal) {
  int lo = 0, hi = count;
  while (lo < hi) { int mid = lo + (hi - lo) / 2; if (a[mid] < key || (also_equal && a[mid] == key)) lo = mid + 1; else hi = mid; }
  return lo;
}
__global__ void merge(int* out, const int* in, int n, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  long long pair = i / (2LL * width) * (2LL * width), middle = pair + width;
  if (middle > n) middle = n;
  long long end = pair + 2LL * width; if (end > n) end = n;
  int key = in[i];
  if (i < middle) out[i + below(in + middle, (int)(end - middle), key, false)] = key;
  else out[i - (middle - pair) + below(in + pair, (int)(middle - pair), key, true)] = key;
}
extern "C" void launch_sort(int* sorted, const int* keys, int n, cudaStream_t stream) {
  int passes = 0;
  for (long long w = 1; w < n; w *= 2) ++passes;
  if (!passes) { cudaMemcpyAsync(sorted, keys, 4, cudaMemcpyDeviceToDevice, stream); return; }
  int* other = nullptr;
  cudaMallocAsync((void**)&other, sizeof(int) * (size_t)n, stream);
  const int* from = keys;
  for (int p = 0; p < passes; ++p) {
    int* to = (passes - p) % 2 ? sorted : other;
    merge<<<(n + 255) / 256, 256, 0, stream>>>(to, from, n, 1 << p);
    from = to;
  }
  cudaFreeAsync(other, stream);
}
