// Number and place in one integer of 64 bits, in the order of `better`: an atomic maximum takes the rest.
#include <cuda_runtime.h>

__device__ unsigned long long packed(float number, int place) {
  const unsigned bits = __float_as_uint(number + 0.0f);  // -0 becomes 0: they are equal
  const unsigned rising = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return (unsigned long long)rising << 32 | (0xffffffffu - place);
}

__global__ void ker_most(unsigned long long* most, const float* x, int n) {
  unsigned long long best = 0;
  for (long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    best = max(best, packed(x[i], i));
  for (int distance = 16; distance > 0; distance /= 2) best = max(best, __shfl_xor_sync(0xffffffff, best, distance));
  if (threadIdx.x % 32 == 0) atomicMax(most, best);
}

__global__ void ker_place(int* place, const unsigned long long* most) { *place = 0xffffffffu - (unsigned)*most; }

extern "C" void launch_argmax(int* place, const float* x, int n, cudaStream_t stream) {
  unsigned long long* most;
  cudaMallocAsync(&most, sizeof *most, stream);
  cudaMemsetAsync(most, 0, sizeof *most, stream);
  ker_most<<<min((n + 255) / 256, 512), 256, 0, stream>>>(most, x, n);
  ker_place<<<1, 1, 0, stream>>>(place, most);
  cudaFreeAsync(most, stream);
}
