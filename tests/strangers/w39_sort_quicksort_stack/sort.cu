// Sorting: each thread sorts 64 keys by quicksort, then runs are merged, twice as long in each pass.
#include <cuda_runtime.h>

constexpr int RUN = 64, STACK = 16;

__device__ void swap(int& a, int& b) {
  const int kept = a;
  a = b;
  b = kept;
}

__global__ void ker_runs(int* to, const int* keys, int n) {
  const long long first = (static_cast<long long>(blockIdx.x) * 64 + threadIdx.x) * RUN;
  if (first >= n) return;
  const int count = n - first < RUN ? static_cast<int>(n - first) : RUN;
  int key[RUN], from[STACK], until[STACK], top = 0;
  for (int i = 0; i < count; ++i) key[i] = keys[first + i];
  from[0] = 0;
  until[0] = count - 1;
  for (top = 1; top > 0;) {
    --top;
    int low = from[top], high = until[top];
    while (high - low > 6) {
      const int middle = (low + high) / 2;
      if (key[middle] < key[low]) swap(key[middle], key[low]);
      if (key[high] < key[low]) swap(key[high], key[low]);
      if (key[high] < key[middle]) swap(key[high], key[middle]);
      const int pivot = key[middle];
      int i = low, j = high;
      while (i <= j) {
        while (key[i] < pivot) ++i;
        while (key[j] > pivot) --j;
        if (i <= j) swap(key[i++], key[j--]);
      }
      from[top] = low;
      until[top] = j;
      ++top;
      low = i;
    }
  }
  for (int i = 1; i < count; ++i) {  // what is left are short parts
    const int moved = key[i];
    int j = i;
    for (; j > 0 && key[j - 1] > moved; --j) key[j] = key[j - 1];
    key[j] = moved;
  }
  for (int i = 0; i < count; ++i) to[first + i] = key[i];
}

__global__ void ker_merge(int* to, const int* keys, int n, int length) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  const int key = keys[i], pair = i / (2 * length) * (2 * length), middle = min(pair + length, n);
  const bool left = i < middle;
  int low = left ? middle : pair, high = left ? min(middle + length, n) : middle;
  const int begin = low;
  while (low < high) {  // how many of the other run come before
    const int at = (low + high) / 2;
    if (left ? keys[at] < key : keys[at] <= key) low = at + 1; else high = at;
  }
  to[pair + (i - (left ? pair : middle)) + (low - begin)] = key;
}

extern "C" void launch_sort(int* sorted, const int* keys, int n, cudaStream_t stream) {
  int passes = 0;
  for (long long length = RUN; length < n; length *= 2) ++passes;
  int* other = nullptr;
  cudaMallocAsync(&other, n * sizeof(int), stream);
  int* to = passes % 2 ? other : sorted;
  const int runs = (n + RUN - 1) / RUN;
  ker_runs<<<(runs + 63) / 64, 64, 0, stream>>>(to, keys, n);
  int length = RUN;
  for (int pass = 0; pass < passes; ++pass, length *= 2) {
    int* next = to == sorted ? other : sorted;
    ker_merge<<<(n + 255) / 256, 256, 0, stream>>>(next, to, n, length);
    to = next;
  }
  cudaFreeAsync(other, stream);
}
