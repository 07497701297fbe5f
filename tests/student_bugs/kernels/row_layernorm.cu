#include <cuda_runtime.h>

__global__ void layernorm_rows(float *res, float *vars, float *means, const float *inp, const float *scale,
                               const float *bias, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float *x = inp + (size_t)row * n;
  float mean = 0.0f;
  for (int i = 0; i < n; i++) mean += x[i];
  mean /= n;
  float variance = 0.0f;
  for (int i = 0; i < n; i++) variance += (x[i] - mean) * (x[i] - mean);
  variance = variance / n + 1e-8f;
  means[row] = mean;
  vars[row] = variance;
  for (int i = 0; i < n; i++) {
    res[(size_t)row * n + i] = (x[i] - mean) * rsqrtf(variance) * scale[i] + bias[i];
  }
}

extern "C" void launch_layernorm(float *ln_res, float *vars, float *means, const float *inp, const float *scale,
                                 const float *bias, int batch_size, int hidden_dim, cudaStream_t stream) {
  int blocks = (batch_size + 31) / 32;
  layernorm_rows<<<blocks, 32, 0, stream>>>(ln_res, vars, means, inp, scale, bias, batch_size, hidden_dim);
}

__global__ void sums_over_rows(float *gamma_grad, float *betta_grad, const float *out_grad, const float *inp,
                               const float *vars, const float *means, int rows, int n) {
  int row = blockIdx.x;
  float scale = rsqrtf(vars[row]);
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    size_t at = (size_t)row * n + i;
    atomicAdd(&gamma_grad[i], out_grad[at] * (inp[at] - means[row]) * scale);
    atomicAdd(&betta_grad[i], out_grad[at]);
  }
}

__global__ void gradients_of_rows(float *inp_grad, const float *out_grad, const float *inp, const float *gamma,
                                  const float *vars, const float *means, int rows, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  size_t first = (size_t)row * n;
  float scale = rsqrtf(vars[row]);
  float a = 0.0f, b = 0.0f;
  for (int i = 0; i < n; i++) {
    float d = out_grad[first + i] * gamma[i];
    a += d;
    b += d * (inp[first + i] - means[row]) * scale;
  }
  for (int i = 0; i < n; i++) {
    float normed = (inp[first + i] - means[row]) * scale;
    inp_grad[first + i] = (out_grad[first + i] * gamma[i] - (a + normed * b) / n) * scale;
  }
}

extern "C" void launch_layernorm_bw(float *gamma_grad, float *betta_grad, float *inp_grad, const float *out_grad,
                                    const float *inp, const float *gamma, const float *betta, const float *vars,
                                    const float *means, int batch_size, int hidden_dim, cudaStream_t stream_1,
                                    cudaStream_t stream_2) {
  cudaMemsetAsync(gamma_grad, 0, hidden_dim * sizeof(float), stream_1);
  cudaMemsetAsync(betta_grad, 0, hidden_dim * sizeof(float), stream_1);
  sums_over_rows<<<batch_size, 128, 0, stream_1>>>(gamma_grad, betta_grad, out_grad, inp, vars, means, batch_size,
                                                   hidden_dim);
  gradients_of_rows<<<(batch_size + 63) / 64, 64, 0, stream_2>>>(inp_grad, out_grad, inp, gamma, vars, means,
                                                                 batch_size, hidden_dim);
}
