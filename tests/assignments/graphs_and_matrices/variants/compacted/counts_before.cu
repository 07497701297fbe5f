// Each thread counts what is kept before its number.
#include <cuda_runtime.h>

__global__ void ker_compacted(long long* y, const long long* x, const bool* mask, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || !mask[i]) return;
  int before = 0;
  for (int j = 0; j < i; ++j) before += mask[j];
  y[before] = x[i];
}

extern "C" void launch_compacted(long long* y, const long long* x, const bool* mask, int n, cudaStream_t stream) {
  ker_compacted<<<(n + 127) / 128, 128, 0, stream>>>(y, x, mask, n);
}
