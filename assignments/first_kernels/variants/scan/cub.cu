// CUB's scan, which comes with CUDA.
#include <cub/cub.cuh>

extern "C" void launch_scan(float* sums, const float* x, int n, cudaStream_t stream) {
  size_t bytes = 0;
  cub::DeviceScan::InclusiveSum(nullptr, bytes, x, sums, n, stream);
  void* scratch;
  cudaMallocAsync(&scratch, bytes, stream);
  cub::DeviceScan::InclusiveSum(scratch, bytes, x, sums, n, stream);
  cudaFreeAsync(scratch, stream);
}
