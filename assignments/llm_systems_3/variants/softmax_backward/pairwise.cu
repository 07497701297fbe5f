// One thread per row: pairwise summation, halves added to halves, and the product s g - s D.
#include <cuda_runtime.h>

__device__ float pairwise(const float* g, const float* y, int count) {
  float stack[16];
  int depth = 0;
  for (int j = 0; j < count; ++j) {
    stack[depth++] = g[j] * y[j];
    for (int done = j + 1; done % 2 == 0; done /= 2) {
      --depth;
      stack[depth - 1] += stack[depth];
    }
  }
  while (depth > 1) {
    --depth;
    stack[depth - 1] += stack[depth];
  }
  return stack[0];
}

__global__ void gradient(float* grad, const float* soft, int rows, int keys) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float* g = grad + (size_t)row * keys;
  const float* y = soft + (size_t)row * keys;
  const float sum = pairwise(g, y, keys);
  for (int j = 0; j < keys; ++j) g[j] = y[j] * g[j] - y[j] * sum;
}

extern "C" void launch_attn_softmax_bw(float* out_grad, const float* soft_inp, int rows, int softmax_len,
                                       cudaStream_t stream) {
  gradient<<<(rows + 63) / 64, 64, 0, stream>>>(out_grad, soft_inp, rows, softmax_len);
}
