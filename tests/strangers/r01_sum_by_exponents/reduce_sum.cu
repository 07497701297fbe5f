// The sum of a vector, exact up to the end: a counter of 64 bits for each exponent.
#include <cuda_runtime.h>

constexpr int EXPONENTS = 256;

__global__ void ker_collect(unsigned long long* counters, const float* x, int n) {
  __shared__ unsigned long long mine[EXPONENTS];
  mine[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
    const unsigned bits = __float_as_uint(x[i]);
    const int exponent = bits >> 23 & 255;
    const long long significand = (bits & 0x7fffff) | (exponent ? 0x800000 : 0);
    if (significand) atomicAdd(mine + exponent, static_cast<unsigned long long>(bits >> 31 ? -significand : significand));
  }
  __syncthreads();
  if (mine[threadIdx.x]) atomicAdd(counters + threadIdx.x, mine[threadIdx.x]);
}

__global__ void ker_total(float* total, const unsigned long long* counters) {
  double sum = 0;
  for (int exponent = 0; exponent < EXPONENTS - 1; ++exponent)
    sum += ldexp(static_cast<double>(static_cast<long long>(counters[exponent])), (exponent ? exponent : 1) - 150);
  total[0] = static_cast<float>(sum);
}

extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  unsigned long long* counters;
  cudaMallocAsync(&counters, EXPONENTS * sizeof *counters, stream);
  cudaMemsetAsync(counters, 0, EXPONENTS * sizeof *counters, stream);
  const int blocks = (n + 4095) / 4096;
  ker_collect<<<blocks < 432 ? blocks : 432, 256, 0, stream>>>(counters, x, n);
  ker_total<<<1, 1, 0, stream>>>(total, counters);
  cudaFreeAsync(counters, stream);
}
