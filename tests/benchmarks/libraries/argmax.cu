// CUB's reduction of pairs with the launcher of the problem `argmax`.
#include <cub/device/device_reduce.cuh>

extern "C" void launch_argmax(int* place, const float* x, int n, cudaStream_t stream) {
  size_t bytes = 0;
  float* scratch = nullptr;  // the largest number, and from 256 bytes on what CUB needs
  cub::DeviceReduce::ArgMax(nullptr, bytes, x, scratch, place, n, stream);
  cudaMallocAsync(&scratch, 256 + bytes, stream);
  cub::DeviceReduce::ArgMax(scratch + 64, bytes, x, scratch, place, n, stream);
  cudaFreeAsync(scratch, stream);
}
