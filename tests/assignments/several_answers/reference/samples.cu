#include <cuda_runtime.h>

__device__ unsigned mixed(unsigned long long x) {  // the last steps of splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return (unsigned)(x >> 32);
}

__global__ void ker_samples(float* y, int seed, float rate, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned bits = mixed((seed * 0x9e3779b97f4a7c15ull) + (i + 1) * 0xd1b54a32d192ed03ull);
  y[i] = -logf((bits + 0.5f) * 0x1p-32f) / rate;
}

extern "C" void launch_samples(float* y, int seed, float rate, int n, cudaStream_t stream) {
  ker_samples<<<(n + 255) / 256, 256, 0, stream>>>(y, seed, rate, n);
}
