// A linear congruential generator for each thread of one block.
#include <cuda_runtime.h>

__global__ void ker_hits(unsigned long long* hits, unsigned int seed, size_t n) {
  __shared__ unsigned int own;
  if (threadIdx.x == 0) own = 0;
  __syncthreads();
  unsigned long long state = (seed + 1) * 0x9e3779b97f4a7c15ull + threadIdx.x * 0xd1342543de82ef95ull;
  const auto next = [&state] {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned int)(state >> 40) * 0x1p-24f;
  };
  for (int i = 0; i < 4; ++i) next();
  unsigned int count = 0;
  for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
    const float x = next(), y = next();
    count += hypotf(x, y) <= 1.0f;
  }
  atomicAdd(&own, count);
  __syncthreads();
  if (threadIdx.x == 0) *hits = own;
}

extern "C" void launch_hits(unsigned long long* hits, unsigned int seed, size_t n, cudaStream_t stream) {
  ker_hits<<<1, 256, 0, stream>>>(hits, seed, n);
}
