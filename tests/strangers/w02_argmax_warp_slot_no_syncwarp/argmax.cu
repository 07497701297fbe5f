// Candidates are packed into 64 bits: larger number first, then smaller place.
#include <cuda_runtime.h>

__device__ unsigned long long packed(float v, int i) {
  unsigned u = __float_as_uint(v + 0.0f);
  u = u & 0x80000000u ? ~u : u | 0x80000000u;
  return (unsigned long long)u << 32 | (0xffffffffu - (unsigned)i);
}

__global__ void ker_best(unsigned long long* best, const float* x, int n) {
  __shared__ unsigned long long slot[8];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) slot[warp] = 0;
  __syncthreads();
  unsigned long long mine = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned long long p = packed(x[i], i);
    if (p > mine) mine = p;
  }
  atomicMax(&slot[warp], mine);
  if (lane == 0) {
    unsigned long long b = atomicExch(&slot[warp], 0ull);
    atomicMax(best, b);
  }
}
__global__ void ker_place(int* place, const unsigned long long* best) {
  *place = (int)(0xffffffffu - (unsigned)*best);
}

extern "C" void launch_argmax(int* place, const float* x, int n, cudaStream_t stream) {
  unsigned long long* best;
  cudaMallocAsync(&best, 8, stream);
  cudaMemsetAsync(best, 0, 8, stream);
  int blocks = (n + 1023) / 1024;
  if (blocks > 432) blocks = 432;
  ker_best<<<blocks, 256, 0, stream>>>(best, x, n);
  ker_place<<<1, 1, 0, stream>>>(place, best);
  cudaFreeAsync(best, stream);
}
