// Sorting: a copy of the keys, sorted in place by CUB's merge sort.
#include <cuda_runtime.h>

#include <cub/device/device_merge_sort.cuh>

struct Less {
  __device__ bool operator()(int a, int b) const { return a < b; }
};

extern "C" void launch_sort(int* sorted, const int* keys, int n, cudaStream_t stream) {
  cudaMemcpyAsync(sorted, keys, n * sizeof(int), cudaMemcpyDeviceToDevice, stream);
  size_t bytes = 0;
  cub::DeviceMergeSort::SortKeys(nullptr, bytes, sorted, n, Less{}, stream);
  void* scratch = nullptr;
  cudaMallocAsync(&scratch, bytes + 1, stream);
  cub::DeviceMergeSort::SortKeys(scratch, bytes, sorted, n, Less{}, stream);
  cudaFreeAsync(scratch, stream);
}
