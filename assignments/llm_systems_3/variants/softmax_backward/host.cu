// The original handout: host pointers, copies inside the launcher.
#include <cuda_runtime.h>

__global__ void gradient(float* grad, const float* soft, int rows, int keys) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int j = 0; j < keys; ++j) sum += grad[(size_t)row * keys + j] * soft[(size_t)row * keys + j];
  for (int j = 0; j < keys; ++j) {
    const size_t i = (size_t)row * keys + j;
    grad[i] = soft[i] * (grad[i] - sum);
  }
}

extern "C" void launch_attn_softmax_bw(float* out_grad, const float* soft_inp, int rows, int softmax_len,
                                       cudaStream_t stream) {
  const size_t bytes = sizeof(float) * rows * softmax_len;
  float *grad, *soft;
  cudaMalloc(&grad, bytes);
  cudaMalloc(&soft, bytes);
  cudaMemcpy(grad, out_grad, bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(soft, soft_inp, bytes, cudaMemcpyHostToDevice);
  gradient<<<(rows + 63) / 64, 64, 0, stream>>>(grad, soft, rows, softmax_len);
  cudaStreamSynchronize(stream);
  cudaMemcpy(out_grad, grad, bytes, cudaMemcpyDeviceToHost);
  cudaFree(grad);
  cudaFree(soft);
}
