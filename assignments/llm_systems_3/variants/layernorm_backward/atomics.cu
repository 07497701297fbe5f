// Column sums by atomics into memory that is cleared on the stream; rows follow on the other stream after an event.
#include <cuda_runtime.h>

__global__ void rows_kernel(float* dx, const float* dy, const float* x, const float* gamma, const float* vars,
                            const float* means, int n) {
  const size_t start = (size_t)blockIdx.x * n;
  const float mean = means[blockIdx.x], inverse = rsqrtf(vars[blockIdx.x]);
  float a = 0.0f, b = 0.0f;
  for (int i = threadIdx.x; i < n; i += 32) {
    const float g = dy[start + i] * gamma[i];
    a += g;
    b += g * (x[start + i] - mean) * inverse;
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    a += __shfl_xor_sync(0xffffffff, a, offset);
    b += __shfl_xor_sync(0xffffffff, b, offset);
  }
  for (int i = threadIdx.x; i < n; i += 32) {
    const float xhat = (x[start + i] - mean) * inverse;
    dx[start + i] = (dy[start + i] * gamma[i] - a / n - xhat * (b / n)) * inverse;
  }
}

__global__ void columns_kernel(float* dgamma, float* dbeta, const float* dy, const float* x, const float* vars,
                               const float* means, int rows, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int first = blockIdx.y * 64, last = min(rows, first + 64);
  float a = 0.0f, b = 0.0f;
  for (int row = first; row < last; ++row) {
    const size_t at = (size_t)row * n + i;
    a += dy[at] * (x[at] - means[row]) * rsqrtf(vars[row] + 1e-8f);
    b += dy[at];
  }
  atomicAdd(dgamma + i, a);
  atomicAdd(dbeta + i, b);
}

extern "C" void launch_layernorm_bw(float* gamma_grad, float* betta_grad, float* inp_grad, const float* out_grad,
                                    const float* inp, const float* gamma, const float* betta, const float* vars,
                                    const float* means, int batch_size, int hidden_dim, cudaStream_t stream_1,
                                    cudaStream_t stream_2) {
  cudaEvent_t cleared;
  cudaEventCreateWithFlags(&cleared, cudaEventDisableTiming);
  cudaMemsetAsync(gamma_grad, 0, sizeof(float) * hidden_dim, stream_1);
  cudaMemsetAsync(betta_grad, 0, sizeof(float) * hidden_dim, stream_1);
  cudaEventRecord(cleared, stream_1);
  cudaStreamWaitEvent(stream_2, cleared, 0);
  cudaEventDestroy(cleared);
  columns_kernel<<<dim3((hidden_dim + 63) / 64, (batch_size + 63) / 64), 64, 0, stream_2>>>(
      gamma_grad, betta_grad, out_grad, inp, vars, means, batch_size, hidden_dim);
  rows_kernel<<<batch_size, 32, 0, stream_1>>>(inp_grad, out_grad, inp, gamma, vars, means, hidden_dim);
}
