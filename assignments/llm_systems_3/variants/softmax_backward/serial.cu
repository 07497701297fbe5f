// One thread per row, in order.
#include <cuda_runtime.h>

__global__ void gradient(float* grad, const float* soft, int rows, int keys) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float* g = grad + (size_t)row * keys;
  const float* y = soft + (size_t)row * keys;
  float sum = 0.0f;
  for (int j = 0; j < keys; ++j) sum += g[j] * y[j];
  for (int j = 0; j < keys; ++j) g[j] = y[j] * (g[j] - sum);
}

extern "C" void launch_attn_softmax_bw(float* out_grad, const float* soft_inp, int rows, int softmax_len,
                                       cudaStream_t stream) {
  gradient<<<(rows + 63) / 64, 64, 0, stream>>>(out_grad, soft_inp, rows, softmax_len);
}
