// Runs of 32 keys by a bitonic network in each warp, then merges by binary search.
#include <cuda_runtime.h>

__global__ void ker_runs(int* sorted, const int* keys, int n) {
  __shared__ volatile int tile[256];
  const int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x % 32, first = threadIdx.x - lane;
  int mine = i < n ? keys[i] : 0x7fffffff;
  tile[threadIdx.x] = mine;
  for (int size = 2; size <= 32; size *= 2)
    for (int d = size / 2; d > 0; d /= 2) {
      const int other = tile[first + (lane ^ d)];
      const bool up = (lane & size) == 0, low = (lane & d) == 0;
      mine = up == low ? min(mine, other) : max(mine, other);
      tile[threadIdx.x] = mine;
    }
  if (i < n) sorted[i] = mine;
}
__global__ void ker_merge(int* to, const int* from, int n, int run) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int pair = i / (2 * run) * (2 * run), middle = min(pair + run, n), end = min(pair + 2 * run, n), key = from[i];
  int lo, hi;
  const bool left = i < middle;
  if (left) lo = middle, hi = end; else lo = pair, hi = middle;
  const int begin = lo;
  while (lo < hi) {
    const int at = lo + (hi - lo) / 2;
    if (left ? from[at] < key : from[at] <= key) lo = at + 1; else hi = at;
  }
  to[pair + (left ? i - pair : i - middle) + (lo - begin)] = key;
}

extern "C" void launch_sort(int* sorted, const int* keys, int n, cudaStream_t stream) {
  int* other;
  cudaMallocAsync(&other, size_t(n) * 4, stream);
  int merges = 0;
  for (long long run = 32; run < n; run *= 2) ++merges;
  int* from = merges % 2 ? other : sorted;
  int* to = merges % 2 ? sorted : other;
  ker_runs<<<(n + 255) / 256, 256, 0, stream>>>(from, keys, n);
  for (long long run = 32; run < n; run *= 2) {
    ker_merge<<<(n + 255) / 256, 256, 0, stream>>>(to, from, n, (int)run);
    int* t = from; from = to; to = t;
  }
  cudaFreeAsync(other, stream);
}
