#include <cuda_runtime.h>

__global__ void ker_spmv(float* y, const float* values, const int* columns, const int* starts, const float* x, int rows, int entries) {
  const long long k = (long long)blockIdx.x * 256 + threadIdx.x;
  const int lane = threadIdx.x % 32;
  int row = -1;
  float v = 0.0f;
  if (k < entries) {
    int low = 0, high = rows - 1;
    while (low < high) {
      const int middle = low + (high - low + 1) / 2;
      if (starts[middle] <= k) low = middle;
      else high = middle - 1;
    }
    row = low;
    v = values[k] * x[columns[k]];
  }
  for (int d = 1; d < 32; d *= 2) {  // a sum of each row's lanes, in its last one
    const float o = __shfl_up_sync(0xffffffffu, v, d);
    const int r = __shfl_up_sync(0xffffffffu, row, d);
    if (lane >= d && r == row) v += o;
  }
  const int next = __shfl_down_sync(0xffffffffu, row, 1);
  if (row >= 0 && (lane == 31 || next != row)) atomicAdd(&y[row], v);
}

extern "C" void launch_spmv(float* y, const float* values, const int* columns, const int* starts, const float* x,
                            int rows, int width, int entries, cudaStream_t stream) {
  cudaMemsetAsync(y, 0, (size_t)rows * sizeof(float), stream);
  if (entries > 0) ker_spmv<<<(entries + 255) / 256, 256, 0, stream>>>(y, values, columns, starts, x, rows, entries);
}
