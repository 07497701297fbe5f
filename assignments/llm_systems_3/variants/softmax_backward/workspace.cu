// Two launches with the row sums between them in stream-ordered memory.
#include <cuda_runtime.h>

__global__ void sums(float* sum, const float* grad, const float* soft, int rows, int keys) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float value = 0.0f;
  for (int j = lane; j < keys; j += 32) value += grad[(size_t)row * keys + j] * soft[(size_t)row * keys + j];
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
  if (lane == 0) sum[row] = value;
}

__global__ void gradient(float* grad, const float* soft, const float* sum, long long count, int keys) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) grad[i] = soft[i] * (grad[i] - sum[i / keys]);
}

extern "C" void launch_attn_softmax_bw(float* out_grad, const float* soft_inp, int rows, int softmax_len,
                                       cudaStream_t stream) {
  float* sum = nullptr;
  const long long count = (long long)rows * softmax_len;
  cudaMallocAsync(&sum, sizeof(float) * rows, stream);
  sums<<<(rows + 3) / 4, 128, 0, stream>>>(sum, out_grad, soft_inp, rows, softmax_len);
  gradient<<<(unsigned)((count + 255) / 256), 256, 0, stream>>>(out_grad, soft_inp, sum, count, softmax_len);
  cudaFreeAsync(sum, stream);
}
