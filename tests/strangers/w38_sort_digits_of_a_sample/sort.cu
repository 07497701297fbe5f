// Radix sort, 4 bits at a time; digits that all keys share need no pass. 256 keys tell which these are.
#include <cuda_runtime.h>

constexpr int THREADS = 256, ITEMS = 4, TILE = THREADS * ITEMS, DIGITS = 16;

__global__ void ker_look(unsigned* differ, const int* keys, int n) {
  if (n <= 4096) {
    for (int i = threadIdx.x; i < n; i += 256) atomicOr(differ, static_cast<unsigned>(keys[i] ^ keys[0]));
    return;
  }
  const unsigned at = static_cast<unsigned>((threadIdx.x * static_cast<unsigned long long>(n)) >> 8);
  const unsigned place = threadIdx.x == 255 ? n - 1 : at + (threadIdx.x % 2 && at + 1 < n);
  atomicOr(differ, static_cast<unsigned>(keys[place] ^ keys[0]));
}

__device__ int digit_of(int key, int shift) { return (static_cast<unsigned>(key) ^ 0x80000000u) >> shift & 15; }

__global__ void ker_count(int* counts, const unsigned* differ, const int* keys, int n, int shift) {
  __shared__ int bins[DIGITS];
  if ((*differ >> shift & 15) == 0) return;
  if (threadIdx.x < DIGITS) bins[threadIdx.x] = 0;
  __syncthreads();
  const long long first = static_cast<long long>(blockIdx.x) * TILE + threadIdx.x;
  for (int i = 0; i < ITEMS; ++i)
    if (first + i * THREADS < n) atomicAdd(bins + digit_of(keys[first + i * THREADS], shift), 1);
  __syncthreads();
  if (threadIdx.x < DIGITS) counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}

__device__ int before_thread(int value, int* of_warps, int* total) {  // the sum over the threads before, of a block
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int up = value;
  for (int offset = 1; offset < 32; offset *= 2) {
    const int other = __shfl_up_sync(0xffffffff, up, offset);
    if (lane >= offset) up += other;
  }
  __syncthreads();
  if (lane == 31) of_warps[warp] = up;
  __syncthreads();
  int before = up - value, all = 0;
  for (int w = 0; w < blockDim.x / 32; ++w) {
    if (w < warp) before += of_warps[w];
    all += of_warps[w];
  }
  *total = all;
  return before;
}

__global__ void ker_scan(int* counts, const unsigned* differ, int count, int shift) {
  __shared__ int of_warps[32];
  if ((*differ >> shift & 15) == 0) return;
  int carry = 0, total;
  for (int base = 0; base < count; base += 1024) {
    const int at = base + threadIdx.x, value = at < count ? counts[at] : 0;
    const int before = before_thread(value, of_warps, &total);
    if (at < count) counts[at] = carry + before;
    carry += total;
  }
}

__global__ void ker_scatter(int* to, const int* counts, const unsigned* differ, const int* keys, int n, int shift) {
  __shared__ int ranks[DIGITS * THREADS];
  __shared__ int of_warps[32], starts[DIGITS];
  const long long first = static_cast<long long>(blockIdx.x) * TILE + threadIdx.x * ITEMS;
  if ((*differ >> shift & 15) == 0) {
    for (int i = 0; i < ITEMS; ++i)
      if (first + i < n) to[first + i] = keys[first + i];
    return;
  }
  for (int d = 0; d < DIGITS; ++d) ranks[d * THREADS + threadIdx.x] = 0;
  for (int i = 0; i < ITEMS; ++i)
    if (first + i < n) ++ranks[digit_of(keys[first + i], shift) * THREADS + threadIdx.x];
  __syncthreads();
  int sum = 0, total;
  for (int i = 0; i < DIGITS; ++i) sum += ranks[threadIdx.x * DIGITS + i];
  int before = before_thread(sum, of_warps, &total);
  for (int i = 0; i < DIGITS; ++i) {
    const int value = ranks[threadIdx.x * DIGITS + i];
    ranks[threadIdx.x * DIGITS + i] = before;
    before += value;
  }
  __syncthreads();
  if (threadIdx.x < DIGITS) starts[threadIdx.x] = counts[threadIdx.x * gridDim.x + blockIdx.x] - ranks[threadIdx.x * THREADS];
  __syncthreads();
  for (int i = 0; i < ITEMS; ++i)
    if (first + i < n) {
      const int key = keys[first + i], d = digit_of(key, shift);
      to[starts[d] + ranks[d * THREADS + threadIdx.x]++] = key;
    }
}

extern "C" void launch_sort(int* sorted, const int* keys, int n, cudaStream_t stream) {
  const int blocks = (n + TILE - 1) / TILE;
  int* memory;
  cudaMallocAsync(&memory, (static_cast<size_t>(n) + DIGITS * static_cast<size_t>(blocks) + 1) * sizeof(int), stream);
  int *other = memory, *counts = memory + n;
  unsigned* differ = reinterpret_cast<unsigned*>(counts + DIGITS * blocks);
  cudaMemsetAsync(differ, 0, sizeof(int), stream);
  ker_look<<<1, 256, 0, stream>>>(differ, keys, n);
  const int* from = keys;
  for (int pass = 0; pass < 8; ++pass) {
    int* to = pass % 2 ? sorted : other;
    ker_count<<<blocks, THREADS, 0, stream>>>(counts, differ, from, n, 4 * pass);
    ker_scan<<<1, 1024, 0, stream>>>(counts, differ, DIGITS * blocks, 4 * pass);
    ker_scatter<<<blocks, THREADS, 0, stream>>>(to, counts, differ, from, n, 4 * pass);
    from = to;
  }
  cudaFreeAsync(memory, stream);
}
