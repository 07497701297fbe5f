// CUB's radix sort with the launcher of the problem `sort`.
#include <cub/device/device_radix_sort.cuh>

extern "C" void launch_sort(int* sorted, const int* keys, int n, cudaStream_t stream) {
  size_t bytes = 0;
  void* scratch = nullptr;
  cub::DeviceRadixSort::SortKeys(nullptr, bytes, keys, sorted, n, 0, 32, stream);
  cudaMallocAsync(&scratch, bytes, stream);
  cub::DeviceRadixSort::SortKeys(scratch, bytes, keys, sorted, n, 0, 32, stream);
  cudaFreeAsync(scratch, stream);
}
