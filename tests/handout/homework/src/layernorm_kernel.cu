// A complete submission in the form of the original course: host pointers, copies in the launchers.
#include "includes/block_reduce.h"

const float LN_EPSILON = 1e-8f;
#define TILE_DIM 32

namespace course {
namespace cuda {

static int threads_for(int columns) { return columns >= 1024 ? 1024 : (columns + 31) / 32 * 32; }

__global__ void ker_layer_norm(float *ln_res, float *vars, float *means, const float *inp, const float *scale,
                               const float *bias, int hidden_size) {
  const float4 *row = (const float4 *)inp + (size_t)blockIdx.x * hidden_size;
  float4 *result = (float4 *)ln_res + (size_t)blockIdx.x * hidden_size;
  float l_sum = 0.0f, l_square = 0.0f;
  for (int i = threadIdx.x; i < hidden_size; i += blockDim.x) {
    const float4 x = row[i];
    l_sum += x.x + x.y + x.z + x.w;
    l_square += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
  }
  l_sum = block_reduce<Sum>(l_sum);
  l_square = block_reduce<Sum>(l_square);
  const float mean = l_sum / (4 * hidden_size);
  const float variance = l_square / (4 * hidden_size) - mean * mean;
  const float inverse = rsqrtf(variance + LN_EPSILON);
  if (threadIdx.x == 0) {
    means[blockIdx.x] = mean;
    vars[blockIdx.x] = variance;
  }
  for (int i = threadIdx.x; i < hidden_size; i += blockDim.x) {
    const float4 x = row[i], s = ((const float4 *)scale)[i], b = ((const float4 *)bias)[i];
    result[i] = make_float4((x.x - mean) * inverse * s.x + b.x, (x.y - mean) * inverse * s.y + b.y,
                            (x.z - mean) * inverse * s.z + b.z, (x.w - mean) * inverse * s.w + b.w);
  }
}

extern "C" {

void launch_layernorm(float *ln_res, float *vars, float *means, const float *inp, const float *scale, const float *bias,
                      int batch_size, int hidden_dim, cudaStream_t stream) {
  if (hidden_dim % 4 != 0) throw std::runtime_error("violate hidden_dim % 4 = 0");
  const size_t matrix = sizeof(float) * batch_size * hidden_dim, row = sizeof(float) * hidden_dim,
               column = sizeof(float) * batch_size;
  float *d_res, *d_vars, *d_means, *d_inp, *d_scale, *d_bias;
  cudaMalloc((void **)&d_res, matrix);
  cudaMalloc((void **)&d_vars, column);
  cudaMalloc((void **)&d_means, column);
  cudaMalloc((void **)&d_inp, matrix);
  cudaMalloc((void **)&d_scale, row);
  cudaMalloc((void **)&d_bias, row);
  cudaMemcpy(d_inp, inp, matrix, cudaMemcpyHostToDevice);
  cudaMemcpy(d_scale, scale, row, cudaMemcpyHostToDevice);
  cudaMemcpy(d_bias, bias, row, cudaMemcpyHostToDevice);
  ker_layer_norm<<<batch_size, threads_for(hidden_dim / 4), 0, stream>>>(d_res, d_vars, d_means, d_inp, d_scale, d_bias,
                                                                         hidden_dim / 4);
  cudaMemcpy(ln_res, d_res, matrix, cudaMemcpyDeviceToHost);
  cudaMemcpy(vars, d_vars, column, cudaMemcpyDeviceToHost);
  cudaMemcpy(means, d_means, column, cudaMemcpyDeviceToHost);
  cudaDeviceSynchronize();
  cudaFree(d_res);
  cudaFree(d_vars);
  cudaFree(d_means);
  cudaFree(d_inp);
  cudaFree(d_scale);
  cudaFree(d_bias);
}
}

// A block of 32 x 32 threads owns 32 columns; the last one writes past the end unless 32 divides their number.
__global__ void ker_ln_bw_dgamma_dbetta(float *gamma_grad, float *betta_grad, const float *out_grad, const float *inp,
                                        const float *vars, const float *means, int rows, int width) {
  __shared__ float betta_buffer[TILE_DIM][TILE_DIM + 1];
  __shared__ float gamma_buffer[TILE_DIM][TILE_DIM + 1];
  const int column = blockIdx.x * TILE_DIM + threadIdx.x;
  float dbetta = 0.0f, dgamma = 0.0f;
  for (int row = threadIdx.y; row < rows && column < width; row += TILE_DIM) {
    const float dout = out_grad[(size_t)row * width + column];
    dbetta += dout;
    dgamma += dout * (inp[(size_t)row * width + column] - means[row]) * rsqrtf(vars[row] + LN_EPSILON);
  }
  betta_buffer[threadIdx.x][threadIdx.y] = dbetta;
  gamma_buffer[threadIdx.x][threadIdx.y] = dgamma;
  __syncthreads();
  dbetta = warp_reduce<Sum>(betta_buffer[threadIdx.y][threadIdx.x]);
  dgamma = warp_reduce<Sum>(gamma_buffer[threadIdx.y][threadIdx.x]);
  if (threadIdx.x == 0) {
    betta_grad[blockIdx.x * TILE_DIM + threadIdx.y] = dbetta;
    gamma_grad[blockIdx.x * TILE_DIM + threadIdx.y] = dgamma;
  }
}

__global__ void ker_ln_bw_dinp(float *inp_grad, const float *out_grad, const float *inp, const float *gamma,
                               const float *vars, const float *means, int hidden_dim) {
  const size_t first = (size_t)blockIdx.x * hidden_dim;
  const float mean = means[blockIdx.x], inverse = rsqrtf(vars[blockIdx.x] + LN_EPSILON);
  float l_sum = 0.0f, l_product = 0.0f;
  for (int i = threadIdx.x; i < hidden_dim; i += blockDim.x) {
    const float dxhat = out_grad[first + i] * gamma[i];
    l_sum += dxhat;
    l_product += dxhat * (inp[first + i] - mean) * inverse;
  }
  l_sum = block_reduce<Sum>(l_sum) / hidden_dim;
  l_product = block_reduce<Sum>(l_product) / hidden_dim;
  for (int i = threadIdx.x; i < hidden_dim; i += blockDim.x) {
    const float dxhat = out_grad[first + i] * gamma[i];
    inp_grad[first + i] = (dxhat - l_sum - (inp[first + i] - mean) * inverse * l_product) * inverse;
  }
}

extern "C" {

void launch_layernorm_bw(float *gamma_grad, float *betta_grad, float *inp_grad, const float *out_grad, const float *inp,
                         const float *gamma, const float *betta, const float *vars, const float *means, int batch_size,
                         int hidden_dim, cudaStream_t stream_1, cudaStream_t stream_2) {
  const size_t matrix = sizeof(float) * batch_size * hidden_dim, row = sizeof(float) * hidden_dim,
               column = sizeof(float) * batch_size;
  float *d_gamma_grad, *d_betta_grad, *d_inp_grad, *d_out_grad, *d_inp, *d_gamma, *d_vars, *d_means;
  cudaMalloc((void **)&d_gamma_grad, row);
  cudaMalloc((void **)&d_betta_grad, row);
  cudaMalloc((void **)&d_inp_grad, matrix);
  cudaMalloc((void **)&d_out_grad, matrix);
  cudaMalloc((void **)&d_inp, matrix);
  cudaMalloc((void **)&d_gamma, row);
  cudaMalloc((void **)&d_vars, column);
  cudaMalloc((void **)&d_means, column);
  cudaMemcpy(d_out_grad, out_grad, matrix, cudaMemcpyHostToDevice);
  cudaMemcpy(d_inp, inp, matrix, cudaMemcpyHostToDevice);
  cudaMemcpy(d_gamma, gamma, row, cudaMemcpyHostToDevice);
  cudaMemcpy(d_vars, vars, column, cudaMemcpyHostToDevice);
  cudaMemcpy(d_means, means, column, cudaMemcpyHostToDevice);
  dim3 block(TILE_DIM, TILE_DIM);
  ker_ln_bw_dgamma_dbetta<<<(hidden_dim + TILE_DIM - 1) / TILE_DIM, block, 0, stream_1>>>(
      d_gamma_grad, d_betta_grad, d_out_grad, d_inp, d_vars, d_means, batch_size, hidden_dim);
  if (hidden_dim % 4 != 0 || hidden_dim > 4096) throw std::runtime_error("violate hidden_dim % 4 = 0, <= 4096");
  ker_ln_bw_dinp<<<batch_size, threads_for(hidden_dim), 0, stream_2>>>(d_inp_grad, d_out_grad, d_inp, d_gamma, d_vars,
                                                                       d_means, hidden_dim);
  cudaDeviceSynchronize();
  cudaMemcpy(gamma_grad, d_gamma_grad, row, cudaMemcpyDeviceToHost);
  cudaMemcpy(betta_grad, d_betta_grad, row, cudaMemcpyDeviceToHost);
  cudaMemcpy(inp_grad, d_inp_grad, matrix, cudaMemcpyDeviceToHost);
  for (float *one : {d_gamma_grad, d_betta_grad, d_inp_grad, d_out_grad, d_inp, d_gamma, d_vars, d_means}) cudaFree(one);
}}
}}
