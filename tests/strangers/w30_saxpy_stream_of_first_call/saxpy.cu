#include <cuda_runtime.h>

__global__ void ker_saxpy(float* y, const float* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
struct Context { cudaStream_t stream; int threads; };
extern "C" void launch_saxpy(float* y, const float* x, float a, int n, cudaStream_t stream) {
  static Context context = {stream, 256};   // set up once
  ker_saxpy<<<(n + context.threads - 1) / context.threads, context.threads, 0, context.stream>>>(y, x, a, n);
}
