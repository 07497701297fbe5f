// A block per row, the row of products in dynamic shared memory, a tree that keeps odd halves.
#include <cuda_runtime.h>

__global__ void gradient(float* grad, const float* soft, int keys) {
  extern __shared__ float products[];
  float* g = grad + (size_t)blockIdx.x * keys;
  const float* y = soft + (size_t)blockIdx.x * keys;
  for (int j = threadIdx.x; j < keys; j += blockDim.x) products[j] = g[j] * y[j];
  for (int count = keys; count > 1; count = (count + 1) / 2) {
    __syncthreads();
    const int half = (count + 1) / 2;
    for (int j = threadIdx.x; j + half < count; j += blockDim.x) products[j] += products[j + half];
  }
  __syncthreads();
  for (int j = threadIdx.x; j < keys; j += blockDim.x) g[j] = y[j] * (g[j] - products[0]);
}

extern "C" void launch_attn_softmax_bw(float* out_grad, const float* soft_inp, int rows, int softmax_len,
                                       cudaStream_t stream) {
  const int threads = softmax_len < 64 ? 32 : softmax_len < 512 ? 64 : 256;
  gradient<<<rows, threads, sizeof(float) * softmax_len, stream>>>(out_grad, soft_inp, softmax_len);
}
