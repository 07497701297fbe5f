// Histogram in one cooperative launch: each warp has counters of its own in shared memory.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

__global__ void ker_histogram(int* counts, const int* values, int n, int bins) {
  extern __shared__ int counters[];
  const int stride = gridDim.x * 256, first = blockIdx.x * 256 + threadIdx.x;
  for (int bin = first; bin < bins; bin += stride) counts[bin] = 0;
  for (int i = threadIdx.x; i < 8 * bins; i += 256) counters[i] = 0;
  __syncthreads();
  int* mine = counters + threadIdx.x / 32 * bins;
  for (int i = first; i < n; i += stride) atomicAdd(mine + values[i], 1);
  cg::this_grid().sync();
  for (int bin = threadIdx.x; bin < bins; bin += 256) {
    int sum = 0;
    for (int warp = 0; warp < 8; ++warp) sum += counters[warp * bins + bin];
    if (sum > 0) atomicAdd(counts + bin, sum);
  }
}

extern "C" void launch_histogram(int* counts, const int* values, int n, int bins, cudaStream_t stream) {
  const size_t shared = 8 * sizeof(int) * bins;
  static const int most = [shared] {  // these calls take longer than the kernel
    int device, multiprocessors, per_multiprocessor;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    cudaFuncSetAttribute(ker_histogram, cudaFuncAttributeMaxDynamicSharedMemorySize, 8 * sizeof(int) * 4096);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, ker_histogram, 256, shared);
    return multiprocessors * per_multiprocessor;
  }();
  int blocks = (n + 2047) / 2048;
  if (blocks > most) blocks = most;
  void* arguments[] = {&counts, &values, &n, &bins};
  cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(ker_histogram), dim3(blocks), dim3(256), arguments, shared, stream);
}
