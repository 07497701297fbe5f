// A block per diagonal, whose entries are added to y by atomics.
#include <cuda_runtime.h>

__global__ void ker_jds(float* y, const float* values, const float* x, const int* order, const int* begin,
                        const int* columns) {
  const int first = begin[blockIdx.x], end = begin[blockIdx.x + 1];
  for (int entry = first + threadIdx.x; entry < end; entry += blockDim.x)
    atomicAdd(&y[order[entry - first]], values[entry] * x[columns[entry]]);
}

extern "C" void launch_jds(float* y, const float* values, const float* x, const int* order, const int* begin,
                           const int* columns, int longest, int rows, int entries, cudaStream_t stream) {
  cudaMemsetAsync(y, 0, rows * sizeof(float), stream);
  ker_jds<<<longest, 128, 0, stream>>>(y, values, x, order, begin, columns);
}
