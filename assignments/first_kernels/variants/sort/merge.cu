// Blocks sort 512 keys in shared memory by a bitonic network; then runs are merged two by two, each key going to its
// own place in its run plus its place in the other one, which it looks for.
#include <cuda_runtime.h>

constexpr int RUN = 512;

__global__ void sort_runs(int* sorted, const int* keys, int n) {
  __shared__ int run[RUN];
  const int first = blockIdx.x * RUN;
  for (int i = threadIdx.x; i < RUN; i += RUN / 2) run[i] = first + i < n ? keys[first + i] : 0x7fffffff;
  for (int size = 2; size <= RUN; size *= 2) {
    for (int step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      const int low = threadIdx.x / step * 2 * step + threadIdx.x % step, high = low + step;
      const bool rising = (low & size) == 0;
      const int a = run[low], b = run[high];
      run[low] = rising == (a < b) ? a : b;
      run[high] = rising == (a < b) ? b : a;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < RUN; i += RUN / 2)
    if (first + i < n) sorted[first + i] = run[i];
}

__global__ void merge(int* to, const int* from, int n, int length) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const bool left = i / length % 2 == 0;
  const int mine = i / length * length, other = min(left ? mine + length : mine - length, n);
  const int key = from[i];
  int low = other,
      high = min(other + length, n);  // keys of the other run in front of this one; of equal ones, if right
  while (low < high) {
    const int middle = (low + high) / 2;
    if (left ? from[middle] < key : from[middle] <= key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  to[min(mine, other) + i - mine + low - other] = key;
}

extern "C" void launch_sort(int* sorted, const int* keys, int n, cudaStream_t stream) {
  int* scratch;
  cudaMallocAsync(&scratch, sizeof(int) * n, stream);
  int merges = 0;
  while (static_cast<long long>(RUN) << merges < n) ++merges;
  int *from = merges % 2 == 0 ? sorted : scratch, *to = merges % 2 == 0 ? scratch : sorted;
  sort_runs<<<(n + RUN - 1) / RUN, RUN / 2, 0, stream>>>(from, keys, n);
  for (int length = RUN; length < n; length *= 2) {
    merge<<<(n + 255) / 256, 256, 0, stream>>>(to, from, n, length);
    int* last = to;
    to = from;
    from = last;
  }
  cudaFreeAsync(scratch, stream);
}
