// In place through __ldg, each element before its thread overwrites it; lanes add up in global memory by __syncwarp.
#include <cuda_runtime.h>

__global__ void gradient(float* grad, const float* __restrict__ soft, float* exchange, int rows, int keys) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float* g = grad + (size_t)row * keys;
  const float* y = soft + (size_t)row * keys;
  float* mine = exchange + (size_t)row * 32;
  float sum = 0.0f;
  for (int j = lane; j < keys; j += 32) sum += __ldg(g + j) * y[j];
  mine[lane] = sum;
  __syncwarp();
  for (int width = 16; width > 0; width /= 2) {
    if (lane < width) mine[lane] += mine[lane + width];
    __syncwarp();
  }
  for (int j = lane; j < keys; j += 32) g[j] = y[j] * (__ldg(g + j) - mine[0]);
}

extern "C" void launch_attn_softmax_bw(float* out_grad, const float* soft_inp, int rows, int softmax_len,
                                       cudaStream_t stream) {
  float* exchange;
  cudaMallocAsync(&exchange, sizeof(float) * 32 * rows, stream);
  gradient<<<(rows + 3) / 4, 128, 0, stream>>>(out_grad, soft_inp, exchange, rows, softmax_len);
  cudaFreeAsync(exchange, stream);
}
