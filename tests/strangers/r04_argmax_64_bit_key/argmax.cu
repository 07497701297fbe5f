#include <cuda_runtime.h>

typedef unsigned long long u64;
__device__ u64 best_of_call;
__device__ u64 key(float f, int i) {
  unsigned b = f == 0.0f ? 0u : __float_as_uint(f);
  b = b & 0x80000000u ? ~b : b | 0x80000000u;
  return (u64)b << 32 | (0x7fffffff - i);
}
__global__ void ker_zero() { best_of_call = 0; }
__global__ void ker_best(const float* x, int n) {
  u64 v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) { u64 o = key(x[i], i); if (o > v) v = o; }
  for (int s = 1; s < 32; s *= 2) { u64 o = __shfl_xor_sync(0xffffffffu, v, s); if (o > v) v = o; }
  if (threadIdx.x % 32 == 0 && v > best_of_call) atomicMax(&best_of_call, v);
}
__global__ void ker_tell(int* place) { *place = 0x7fffffff - (int)(best_of_call & 0xffffffffu); }
extern "C" void launch_argmax(int* place, const float* x, int n, cudaStream_t stream) {
  ker_zero<<<1, 1, 0, stream>>>();
  ker_best<<<min((n + 127) / 128, 1000), 128, 0, stream>>>(x, n);
  ker_tell<<<1, 1, 0, stream>>>(place);
}
