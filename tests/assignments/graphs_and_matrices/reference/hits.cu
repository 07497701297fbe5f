#include <cuda_runtime.h>

__device__ unsigned int mixed(unsigned int bits) {  // of PCG
  bits = bits * 747796405u + 2891336453u;
  bits = ((bits >> ((bits >> 28) + 4)) ^ bits) * 277803737u;
  return (bits >> 22) ^ bits;
}

__global__ void ker_hits(unsigned long long* hits, unsigned int seed, size_t n) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned int first = mixed(seed ^ mixed((unsigned int)i)), other = mixed(first + 1);
  const float x = (first >> 8) * 0x1p-24f, y = (other >> 8) * 0x1p-24f;
  const bool inside = i < n && x * x + y * y < 1.0f;
  const unsigned int lanes = __ballot_sync(0xffffffff, inside);
  if (threadIdx.x % 32 == 0 && lanes) atomicAdd(hits, (unsigned long long)__popc(lanes));
}

extern "C" void launch_hits(unsigned long long* hits, unsigned int seed, size_t n, cudaStream_t stream) {
  cudaMemsetAsync(hits, 0, sizeof *hits, stream);
  ker_hits<<<(n + 127) / 128, 128, 0, stream>>>(hits, seed, n);
}
