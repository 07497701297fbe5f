#include <cuda_runtime.h>

struct Parameters { float a; int n; };
__global__ void ker_saxpy(float* y, const float* x, const Parameters* p) {
  int n = p->n;
  float a = p->a;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}
extern "C" void launch_saxpy(float* y, const float* x, float a, int n, cudaStream_t stream) {
  static Parameters* p = nullptr;
  if (!p) cudaMallocHost((void**)&p, sizeof(Parameters));   // once, read by the kernel over the bus
  p->a = a;
  p->n = n;
  ker_saxpy<<<min((n + 255) / 256, 1024), 256, 0, stream>>>(y, x, p);
}
