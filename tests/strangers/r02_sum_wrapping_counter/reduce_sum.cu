#include <cuda_runtime.h>

// atomicInc wraps by itself, so nobody has to set the counter back; every thread has its own fence.
__device__ unsigned turn = 0;
__device__ double parts[256];
__global__ void __launch_bounds__(96) ker(float* total, const float* x, int n) {
  __shared__ double s[96];
  const int t = threadIdx.x;
  double v = 0;
  for (long long i = (long long)blockIdx.x * 96 + t; i < n; i += 96LL * gridDim.x) v += x[i];
  s[t] = v;
  for (int h = 48; h >= 3; h >>= 1) { __syncthreads(); if (t < h) s[t] += s[t + h]; }
  __syncthreads();
  __shared__ int last;
  if (t == 0) { parts[blockIdx.x] = s[0] + s[1] + s[2]; }
  __threadfence();
  __syncthreads();
  if (t == 0) last = atomicInc(&turn, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  __threadfence();
  if (last && t == 95) { double a = 0; for (unsigned b = 0; b < gridDim.x; ++b) a += ((volatile double*)parts)[b]; *total = (float)a; }
}
extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  ker<<<n < 256 * 96 ? (n + 95) / 96 : 256, 96, 0, stream>>>(total, x, n);
}
