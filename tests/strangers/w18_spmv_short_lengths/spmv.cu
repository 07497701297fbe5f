#include <cuda_runtime.h>

// A block takes 32 rows; their lengths lie in shared memory, eight lanes work on a row.
__global__ void ker_spmv(float* y, const float* values, const int* columns, const int* starts, const float* x, int rows) {
  __shared__ int first[32];
  __shared__ unsigned short length[32];
  int base = blockIdx.x * 32;
  if (threadIdx.x < 32 && base + threadIdx.x < rows) {
    int s = starts[base + threadIdx.x];
    first[threadIdx.x] = s;
    length[threadIdx.x] = starts[base + threadIdx.x + 1] - s;
  }
  __syncthreads();
  int mine = threadIdx.x / 8, lane = threadIdx.x % 8;
  float sum = 0.0f;
  if (base + mine < rows)
    for (int k = lane; k < length[mine]; k += 8) sum += values[first[mine] + k] * x[columns[first[mine] + k]];
  for (int s = 4; s > 0; s /= 2) sum += __shfl_down_sync(0xffffffff, sum, s, 8);
  if (lane == 0 && base + mine < rows) y[base + mine] = sum;
}
extern "C" void launch_spmv(float* y, const float* values, const int* columns, const int* starts, const float* x,
                            int rows, int width, int entries, cudaStream_t stream) {
  ker_spmv<<<(rows + 31) / 32, 256, 0, stream>>>(y, values, columns, starts, x, rows);
}
