// The original handout: host pointers, copies inside the launcher, both streams synchronised before the way back.
#include <cuda_runtime.h>

__global__ void rows_kernel(float* dx, const float* dy, const float* x, const float* gamma, const float* vars,
                            const float* means, int rows, int n) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const size_t start = (size_t)row * n;
  const float mean = means[row], inverse = rsqrtf(vars[row] + 1e-8f);
  float a = 0.0f, b = 0.0f;
  for (int i = 0; i < n; ++i) {
    a += dy[start + i] * gamma[i];
    b += dy[start + i] * gamma[i] * (x[start + i] * inverse - mean * inverse);
  }
  for (int i = 0; i < n; ++i) {
    const float xhat = (x[start + i] - mean) * inverse;
    dx[start + i] = inverse / n * (n * dy[start + i] * gamma[i] - a - xhat * b);
  }
}

__global__ void columns_kernel(float* dgamma, float* dbeta, const float* dy, const float* x, const float* vars,
                               const float* means, int rows, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float a = 0.0f, b = 0.0f;
  for (int row = 0; row < rows; ++row) {
    const size_t at = (size_t)row * n + i;
    a += dy[at] * (x[at] - means[row]) * rsqrtf(vars[row] + 1e-8f);
    b += dy[at];
  }
  dgamma[i] = a;
  dbeta[i] = b;
}

extern "C" void launch_layernorm_bw(float* gamma_grad, float* betta_grad, float* inp_grad, const float* out_grad,
                                    const float* inp, const float* gamma, const float* betta, const float* vars,
                                    const float* means, int batch_size, int hidden_dim, cudaStream_t stream_1,
                                    cudaStream_t stream_2) {
  const size_t matrix = sizeof(float) * batch_size * hidden_dim;
  const size_t row = sizeof(float) * hidden_dim, column = sizeof(float) * batch_size;
  float *dy, *x, *dx, *g, *dg, *db, *v, *m;
  cudaMalloc(&dy, matrix);
  cudaMalloc(&x, matrix);
  cudaMalloc(&dx, matrix);
  cudaMalloc(&g, row);
  cudaMalloc(&dg, row);
  cudaMalloc(&db, row);
  cudaMalloc(&v, column);
  cudaMalloc(&m, column);
  cudaMemcpy(dy, out_grad, matrix, cudaMemcpyHostToDevice);
  cudaMemcpy(x, inp, matrix, cudaMemcpyHostToDevice);
  cudaMemcpy(g, gamma, row, cudaMemcpyHostToDevice);
  cudaMemcpy(v, vars, column, cudaMemcpyHostToDevice);
  cudaMemcpy(m, means, column, cudaMemcpyHostToDevice);
  columns_kernel<<<(hidden_dim + 63) / 64, 64, 0, stream_1>>>(dg, db, dy, x, v, m, batch_size, hidden_dim);
  rows_kernel<<<(batch_size + 63) / 64, 64, 0, stream_2>>>(dx, dy, x, g, v, m, batch_size, hidden_dim);
  cudaStreamSynchronize(stream_1);
  cudaStreamSynchronize(stream_2);
  cudaMemcpy(gamma_grad, dg, row, cudaMemcpyDeviceToHost);
  cudaMemcpy(betta_grad, db, row, cudaMemcpyDeviceToHost);
  cudaMemcpy(inp_grad, dx, matrix, cudaMemcpyDeviceToHost);
  for (float* one : {dy, x, dx, g, dg, db, v, m}) cudaFree(one);
}
