#include <cuda_runtime.h>

__device__ unsigned next(unsigned& state) {  // pcg32's output of a linear congruential generator
  const unsigned old = state;
  state = old * 747796405u + 2891336453u;
  const unsigned word = ((old >> ((old >> 28) + 4)) ^ old) * 277803737u;
  return (word >> 22) ^ word;
}

__global__ void ker_samples(float* y, int seed, float rate, int n) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned state = seed * 2654435761u + thread * 0x9e3779b9u;
  next(state);
  for (int i = thread; i < n; i += gridDim.x * blockDim.x)
    y[i] = -log1pf((next(state) >> 8) * -0x1p-24f) / rate;
}

extern "C" void launch_samples(float* y, int seed, float rate, int n, cudaStream_t stream) {
  ker_samples<<<4, 128, 0, stream>>>(y, seed, rate, n);
}
