// Sparse matrix times vector: short rows by a group of eight lanes each; long rows are queued, and done by whole blocks.
#include <cuda_runtime.h>

constexpr int LONG = 4096, ROOM = 1024;

struct Queue {
  int count;
  int rows[ROOM];
};

__global__ void ker_short(float* y, Queue* queue, const float* values, const int* columns, const int* starts,
                          const float* x, int rows) {
  const long long row = (static_cast<long long>(blockIdx.x) * 256 + threadIdx.x) / 8;
  const int lane = threadIdx.x % 8;
  float sum = 0;
  bool queued = false;
  if (row < rows) {
    const int begin = starts[row], end = starts[row + 1];
    queued = end - begin > LONG;
    if (queued && lane == 0) queue->rows[atomicAdd(&queue->count, 1)] = static_cast<int>(row);
    for (int i = begin + lane; !queued && i < end; i += 8) sum += values[i] * x[columns[i]];
  }
  for (int offset = 4; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset, 8);
  if (row < rows && lane == 0 && !queued) y[row] = sum;
}

__global__ void ker_long(float* y, const Queue* queue, const float* values, const int* columns, const int* starts,
                         const float* x) {
  __shared__ float parts[8];
  const int count = queue->count;
  for (int at = blockIdx.x; at < count; at += gridDim.x) {
    const int row = queue->rows[at];
    float sum = 0;
    for (int i = starts[row] + threadIdx.x; i < starts[row + 1]; i += 256) sum += values[i] * x[columns[i]];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int warp = 1; warp < 8; ++warp) sum += parts[warp];
      y[row] = sum;
    }
    __syncthreads();
  }
}

extern "C" void launch_spmv(float* y, const float* values, const int* columns, const int* starts, const float* x,
                            int rows, int width, int entries, cudaStream_t stream) {
  Queue* queue;
  cudaMallocAsync(&queue, sizeof(Queue), stream);
  cudaMemsetAsync(&queue->count, 0, sizeof(int), stream);
  ker_short<<<(rows + 31) / 32, 256, 0, stream>>>(y, queue, values, columns, starts, x, rows);
  ker_long<<<entries / LONG + 1 < 432 ? entries / LONG + 1 : 432, 256, 0, stream>>>(y, queue, values, columns, starts, x);
  cudaFreeAsync(queue, stream);
}
