// Warps of a block agree on a maximum and its place in shared memory; a second kernel does the same for blocks.
#include <cuda_runtime.h>

__device__ inline unsigned code(float x) {
  x += 0.0f;  // -0 and 0 are equal
  const unsigned u = __float_as_uint(x == 0.0f ? 0.0f : x);
  return u & 0x80000000u ? ~u : u | 0x80000000u;
}

__global__ void ker_best(unsigned* keys, int* places, const float* x, int n) {
  __shared__ unsigned best;
  __shared__ int place;
  if (threadIdx.x == 0) best = 0u, place = 0x7fffffff;
  __syncthreads();
  const int begin = blockIdx.x * 4096, end = min(n, begin + 4096);
  const int lane = threadIdx.x % 32;
  unsigned bound = 0u;
  if (lane == 0) bound = atomicMax(&best, code(x[begin]));  // a first guess, to skip what cannot win
  bound = __shfl_sync(0xffffffffu, bound, 0);
  unsigned key = 0u;
  int at = 0x7fffffff;
  for (int i = begin + threadIdx.x; i < end; i += blockDim.x) {
    const unsigned k = code(x[i]);
    if (k > key || (k == key && i < at)) key = k, at = i;
  }
  for (int d = 16; d; d /= 2) {
    const unsigned k = __shfl_xor_sync(0xffffffffu, key, d);
    const int a = __shfl_xor_sync(0xffffffffu, at, d);
    if (k > key || (k == key && a < at)) key = k, at = a;
  }
  if (lane == 0 && key >= bound && at != 0x7fffffff) {
    const unsigned old = atomicMax(&best, key);
    int was = -1;
    if (old < key) was = atomicExch(&place, at);
    else if (old == key) was = atomicMin(&place, at);
    if (was == at) __trap();  // no place comes up twice
  }
  __syncthreads();
  if (threadIdx.x == 0) keys[blockIdx.x] = best, places[blockIdx.x] = place;
}

__global__ void ker_of_blocks(int* place, const unsigned* keys, const int* places, int blocks) {
  unsigned key = 0u;
  int at = 0x7fffffff;
  for (int b = threadIdx.x; b < blocks; b += 32) {
    const unsigned k = keys[b];
    const int a = places[b];
    if (k > key || (k == key && a < at)) key = k, at = a;
  }
  for (int d = 16; d; d /= 2) {
    const unsigned k = __shfl_xor_sync(0xffffffffu, key, d);
    const int a = __shfl_xor_sync(0xffffffffu, at, d);
    if (k > key || (k == key && a < at)) key = k, at = a;
  }
  if (threadIdx.x == 0) *place = at;
}

extern "C" void launch_argmax(int* place, const float* x, int n, cudaStream_t stream) {
  const int blocks = (n + 4095) / 4096;
  unsigned* keys;
  cudaMallocAsync(&keys, blocks * (sizeof(unsigned) + sizeof(int)), stream);
  int* places = (int*)(keys + blocks);
  ker_best<<<blocks, 256, 0, stream>>>(keys, places, x, n);
  ker_of_blocks<<<1, 32, 0, stream>>>(place, keys, places, blocks);
  cudaFreeAsync(keys, stream);
}
