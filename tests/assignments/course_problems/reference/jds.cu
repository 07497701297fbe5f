#include <cuda_runtime.h>

__global__ void ker_jds(float* y, const float* values, const float* x, const int* order, const int* begin,
                        const int* columns, int longest, int rows) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  float sum = 0;
  for (int diagonal = 0; diagonal < longest; ++diagonal) {
    const int entry = begin[diagonal] + i;
    if (entry >= begin[diagonal + 1]) break;
    sum += values[entry] * x[columns[entry]];
  }
  y[order[i]] = sum;
}

extern "C" void launch_jds(float* y, const float* values, const float* x, const int* order, const int* begin,
                           const int* columns, int longest, int rows, int entries, cudaStream_t stream) {
  ker_jds<<<(rows + 127) / 128, 128, 0, stream>>>(y, values, x, order, begin, columns, longest, rows);
}
