// SAXPY: y becomes a x + y. Some GPUs refuse blocks of 1024 threads of a fat kernel; then smaller ones are tried.
#include <cuda_runtime.h>

__global__ void ker_saxpy(float* y, const float* x, float a, int n) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaf(a, x[i], y[i]);
}

extern "C" void launch_saxpy(float* y, const float* x, float a, int n, cudaStream_t stream) {
  for (int threads = 1024; threads >= 128; threads /= 2) {
    ker_saxpy<<<(n + threads - 1) / threads, threads, 0, stream>>>(y, x, a, n);
    if (cudaGetLastError() == cudaSuccess) return;
  }
}
