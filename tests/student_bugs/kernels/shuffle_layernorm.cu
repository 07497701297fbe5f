#include <cuda_runtime.h>
#include <math.h>

constexpr int BLOCK = 128;
constexpr float EPSILON = 1e-8f;

__device__ float block_sum(float value, float *slots) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffff, value, step);
  if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0.f;
  for (int i = 0; i < BLOCK / 32; i++) value += slots[i];
  __syncthreads();
  return value;
}

__global__ void ker_layer_norm(float *ln_res, float *vars, float *means, const float *inp, const float *scale,
                               const float *bias, int hidden_dim) {
  __shared__ float slots[BLOCK / 32];
  const size_t row = blockIdx.x;
  const float *x = inp + row * hidden_dim;
  float sum = 0.f;
  for (int j = threadIdx.x; j < hidden_dim; j += BLOCK) sum += x[j];
  const float mean = block_sum(sum, slots) / hidden_dim;
  float square = 0.f;
  for (int j = threadIdx.x; j < hidden_dim; j += BLOCK) square += (x[j] - mean) * (x[j] - mean);
  const float variance = block_sum(square, slots) / hidden_dim + EPSILON;
  const float inverse = rsqrtf(variance);
  for (int j = threadIdx.x; j < hidden_dim; j += BLOCK)
    ln_res[row * hidden_dim + j] = (x[j] - mean) * inverse * scale[j] + bias[j];
  if (threadIdx.x == 0) {
    vars[row] = variance;
    means[row] = mean;
  }
}

extern "C" void launch_layernorm(float *ln_res, float *vars, float *means, const float *inp, const float *scale,
                                 const float *bias, int batch_size, int hidden_dim, cudaStream_t stream) {
  ker_layer_norm<<<batch_size, BLOCK, 0, stream>>>(ln_res, vars, means, inp, scale, bias, hidden_dim);
}

__global__ void ker_ln_bw_dgamma_dbetta(float *gamma_grad, float *betta_grad, const float *out_grad, const float *inp,
                                        const float *vars, const float *means, int rows, int width) {
  __shared__ float gamma_tile[32][33];
  __shared__ float betta_tile[32][33];
  const int column = blockIdx.x * 32 + threadIdx.x;
  float dgamma = 0.f, dbetta = 0.f;
  if (column < width) {
    for (int row = threadIdx.y; row < rows; row += 32) {
      const float grad = out_grad[(size_t)row * width + column];
      const float xhat = (inp[(size_t)row * width + column] - means[row]) * rsqrtf(vars[row]);
      dgamma += grad * xhat;
      dbetta += grad;
    }
  }
  gamma_tile[threadIdx.x][threadIdx.y] = dgamma;
  betta_tile[threadIdx.x][threadIdx.y] = dbetta;
  __syncthreads();
  dgamma = gamma_tile[threadIdx.y][threadIdx.x];
  dbetta = betta_tile[threadIdx.y][threadIdx.x];
  for (int step = 16; step > 0; step /= 2) {
    dgamma += __shfl_xor_sync(0xffffffff, dgamma, step);
    dbetta += __shfl_xor_sync(0xffffffff, dbetta, step);
  }
  const int out = blockIdx.x * 32 + threadIdx.y;
  if (threadIdx.x == 0 && out < width) {
    gamma_grad[out] = dgamma;
    betta_grad[out] = dbetta;
  }
}

__global__ void ker_ln_bw_dinp(float *inp_grad, const float *out_grad, const float *inp, const float *gamma,
                               const float *vars, const float *means, int width) {
  __shared__ float slots[BLOCK / 32];
  const size_t row = blockIdx.x;
  const float *dy = out_grad + row * width;
  const float *x = inp + row * width;
  const float mean = means[row], inverse = rsqrtf(vars[row]);
  float sum = 0.f, product = 0.f;
  for (int j = threadIdx.x; j < width; j += BLOCK) {
    const float dxhat = dy[j] * gamma[j];
    sum += dxhat;
    product += dxhat * (x[j] - mean) * inverse;
  }
  sum = block_sum(sum, slots);
  product = block_sum(product, slots);
  for (int j = threadIdx.x; j < width; j += BLOCK) {
    const float xhat = (x[j] - mean) * inverse;
    inp_grad[row * width + j] = (dy[j] * gamma[j] - (sum + xhat * product) / width) * inverse;
  }
}

extern "C" void launch_layernorm_bw(float *gamma_grad, float *betta_grad, float *inp_grad, const float *out_grad,
                                    const float *inp, const float *gamma, const float *betta, const float *vars,
                                    const float *means, int batch_size, int hidden_dim, cudaStream_t stream_1,
                                    cudaStream_t stream_2) {
  ker_ln_bw_dgamma_dbetta<<<(hidden_dim + 31) / 32, dim3(32, 32), 0, stream_1>>>(
      gamma_grad, betta_grad, out_grad, inp, vars, means, batch_size, hidden_dim);
  ker_ln_bw_dinp<<<batch_size, BLOCK, 0, stream_2>>>(inp_grad, out_grad, inp, gamma, vars, means, hidden_dim);
}
