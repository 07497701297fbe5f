#include <cuda_runtime.h>

__global__ void ker_clear(int* y, int* count, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 0;
  if (threadIdx.x == 0) *count = 0;
}

__global__ void ker_partition(int* y, int* count, const int* x, int pivot, int n) {
  const int i = n - 1 - blockIdx.x * blockDim.x - threadIdx.x;
  if (i >= 0 && x[i] < pivot) y[atomicAdd(count, 1)] = x[i];
}

extern "C" void launch_partition(int* y, int* count, const int* x, int pivot, int n, cudaStream_t stream) {
  ker_clear<<<1, 512, 0, stream>>>(y, count, n);
  ker_partition<<<(n + 63) / 64, 64, 0, stream>>>(y, count, x, pivot, n);
}
