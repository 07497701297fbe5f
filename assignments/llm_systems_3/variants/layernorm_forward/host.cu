// The original handout: host pointers, copies inside the launcher; statistics and result in two launches.
#include <cuda_runtime.h>

__global__ void statistics(float* vars, float* means, const float* inp, int n) {
  const float* x = inp + (size_t)blockIdx.x * n;
  float sum = 0.0f, square = 0.0f;
  for (int i = threadIdx.x; i < n; i += 32) sum += x[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  const float mean = sum / n;
  for (int i = threadIdx.x; i < n; i += 32) square += (x[i] - mean) * (x[i] - mean);
  for (int offset = 16; offset > 0; offset /= 2) square += __shfl_xor_sync(0xffffffff, square, offset);
  if (threadIdx.x == 0) {
    means[blockIdx.x] = mean;
    vars[blockIdx.x] = square / n;
  }
}

__global__ void result(float* y, const float* vars, const float* means, const float* x, const float* scale,
                       const float* bias, long long count, int n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int row = i / n, column = i % n;
  const float factor = scale[column] / sqrtf(vars[row] + 1e-8f);
  y[i] = x[i] * factor + (bias[column] - means[row] * factor);
}

extern "C" void launch_layernorm(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                                 const float* bias, int batch_size, int hidden_dim, cudaStream_t stream) {
  const long long count = (long long)batch_size * hidden_dim;
  float *x, *y, *s, *b, *v, *m;
  cudaMalloc(&x, sizeof(float) * count);
  cudaMalloc(&y, sizeof(float) * count);
  cudaMalloc(&s, sizeof(float) * hidden_dim);
  cudaMalloc(&b, sizeof(float) * hidden_dim);
  cudaMalloc(&v, sizeof(float) * batch_size);
  cudaMalloc(&m, sizeof(float) * batch_size);
  cudaMemcpy(x, inp, sizeof(float) * count, cudaMemcpyHostToDevice);
  cudaMemcpy(s, scale, sizeof(float) * hidden_dim, cudaMemcpyHostToDevice);
  cudaMemcpy(b, bias, sizeof(float) * hidden_dim, cudaMemcpyHostToDevice);
  statistics<<<batch_size, 32, 0, stream>>>(v, m, x, hidden_dim);
  result<<<(unsigned)((count + 255) / 256), 256, 0, stream>>>(y, v, m, x, s, b, count, hidden_dim);
  cudaStreamSynchronize(stream);
  cudaMemcpy(ln_res, y, sizeof(float) * count, cudaMemcpyDeviceToHost);
  cudaMemcpy(vars, v, sizeof(float) * batch_size, cudaMemcpyDeviceToHost);
  cudaMemcpy(means, m, sizeof(float) * batch_size, cudaMemcpyDeviceToHost);
  for (float* one : {x, y, s, b, v, m}) cudaFree(one);
}
