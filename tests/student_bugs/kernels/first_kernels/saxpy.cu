#include <cuda_runtime.h>

__global__ void axpy(float* y, const float* x, float a, int n) {
  unsigned t = blockDim.x * blockIdx.x + threadIdx.x;
  if (t < n) {
    y[t] = a * x[t] + y[t];
  }
}

extern "C" void launch_saxpy(float* y, const float* x, float a, int n, cudaStream_t stream) {
  unsigned int threads = 128;
  unsigned int blocks = n / threads + (n % threads != 0);
  axpy<<<blocks, threads, 0, stream>>>(y, x, a, n);
}
