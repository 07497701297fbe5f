// Parameters go through pinned memory, in a ring, so that calls in flight keep theirs.
#include <cuda_runtime.h>

struct Parameters {
  float a;
  int n;
};

__global__ void ker_saxpy(float* y, const float* x, const volatile Parameters* p) {
  const float a = p->a;
  const int n = p->n;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}

extern "C" void launch_saxpy(float* y, const float* x, float a, int n, cudaStream_t stream) {
  static Parameters* ring = nullptr;
  static unsigned turn = 0;
  if (ring == nullptr) cudaHostAlloc((void**)&ring, 4 * sizeof(Parameters), cudaHostAllocMapped);
  Parameters* p = ring + turn++ % 4;
  p->a = a;
  p->n = n;
  Parameters* on_device;
  cudaHostGetDevicePointer((void**)&on_device, p, 0);
  int blocks = (n + 255) / 256;
  if (blocks > 864) blocks = 864;
  ker_saxpy<<<blocks, 256, 0, stream>>>(y, x, on_device);
}
