#include <cuda_runtime.h>

__global__ void ker_partition(int* y, int* count, const int* x, int pivot, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] < pivot) y[atomicAdd(count, 1)] = x[i];
}

extern "C" void launch_partition(int* y, int* count, const int* x, int pivot, int n, cudaStream_t stream) {
  cudaMemsetAsync(count, 0, sizeof(int), stream);
  ker_partition<<<(n + 255) / 256, 256, 0, stream>>>(y, count, x, pivot, n);
}
