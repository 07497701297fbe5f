#include <cuda_runtime.h>

__global__ void ker_saxpy(float* y, const float* x, float a, int first, int last) {
  for (int i = first + blockIdx.x * blockDim.x + threadIdx.x; i <= last; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}
extern "C" void launch_saxpy(float* y, const float* x, float a, int n, cudaStream_t stream) {
  int chunk = n > 40000 && n < 1000000 ? (n + 2) / 3 : n;      // in the middle, three launches are faster than one
  for (int first = 0; first < n; first += chunk) {
    int last = min(first + chunk, n - 1);
    ker_saxpy<<<min((last - first + 256) / 256, 2048), 256, 0, stream>>>(y, x, a, first, last);
  }
}
