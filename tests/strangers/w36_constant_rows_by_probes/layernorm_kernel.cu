#include <cuda_runtime.h>

__device__ inline float block_sum(float v) {   // the sum in all threads
  __shared__ float part[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  __syncthreads();
  if (lane == 0) part[warp] = v;
  __syncthreads();
  v = lane < (blockDim.x + 31) / 32 ? part[lane] : 0.0f;
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

__global__ void ker_layer_norm(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                               const float* bias, int hidden) {
  const float* x = inp + (size_t)blockIdx.x * hidden;
  float* y = ln_res + (size_t)blockIdx.x * hidden;
  if (hidden >= 64) {  // padding: rows of one value
    const int k = threadIdx.x % 16, at = k < 15 ? k * (hidden / 16) + k * 5 % 3 : hidden - 1;
    if (__syncthreads_and(x[at] == x[0])) {
      for (int i = threadIdx.x; i < hidden; i += blockDim.x) y[i] = bias[i];
      if (threadIdx.x == 0) vars[blockIdx.x] = 0.0f, means[blockIdx.x] = x[0];
      return;
    }
  }
  float s = 0.0f;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) s += x[i];
  const float mean = block_sum(s) / hidden;
  s = 0.0f;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) s += (x[i] - mean) * (x[i] - mean);
  const float var = block_sum(s) / hidden, r = rsqrtf(var + 1e-8f);
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) y[i] = (x[i] - mean) * r * scale[i] + bias[i];
  if (threadIdx.x == 0) vars[blockIdx.x] = var, means[blockIdx.x] = mean;
}

extern "C" void launch_layernorm(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                                 const float* bias, int batch_size, int hidden_dim, cudaStream_t stream) {
  ker_layer_norm<<<batch_size, hidden_dim >= 1024 ? 256 : 64, 0, stream>>>(ln_res, vars, means, inp, scale, bias, hidden_dim);
}

__global__ void ker_ln_bw_dinp(float* inp_grad, const float* out_grad, const float* inp, const float* gamma,
                               const float* vars, const float* means, int hidden) {
  const size_t at = (size_t)blockIdx.x * hidden;
  const float r = rsqrtf(vars[blockIdx.x] + 1e-8f), mean = means[blockIdx.x];
  float a = 0.0f, b = 0.0f;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    const float g = out_grad[at + i] * gamma[i];
    a += g;
    b += g * ((inp[at + i] - mean) * r);
  }
  a = block_sum(a) / hidden;
  b = block_sum(b) / hidden;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    const float g = out_grad[at + i] * gamma[i], h = (inp[at + i] - mean) * r;
    inp_grad[at + i] = (g - a - h * b) * r;
  }
}

__global__ void ker_ln_bw_dgamma_dbetta(float* gamma_grad, float* betta_grad, const float* out_grad, const float* inp,
                                        const float* vars, const float* means, int rows, int hidden) {
  __shared__ float a[8][33], b[8][33];
  const int c = blockIdx.x * 32 + threadIdx.x;
  float g = 0.0f, d = 0.0f;
  if (c < hidden)
    for (int r = threadIdx.y; r < rows; r += 8) {
      const float dy = out_grad[(size_t)r * hidden + c];
      d += dy;
      g += dy * ((inp[(size_t)r * hidden + c] - means[r]) * rsqrtf(vars[r] + 1e-8f));
    }
  a[threadIdx.y][threadIdx.x] = g;
  b[threadIdx.y][threadIdx.x] = d;
  __syncthreads();
  if (threadIdx.y == 0 && c < hidden) {
    for (int k = 1; k < 8; ++k) g += a[k][threadIdx.x], d += b[k][threadIdx.x];
    gamma_grad[c] = g;
    betta_grad[c] = d;
  }
}

extern "C" void launch_layernorm_bw(float* gamma_grad, float* betta_grad, float* inp_grad, const float* out_grad,
                                    const float* inp, const float* gamma, const float* betta, const float* vars,
                                    const float* means, int batch_size, int hidden_dim, cudaStream_t stream_1,
                                    cudaStream_t stream_2) {
  ker_ln_bw_dgamma_dbetta<<<(hidden_dim + 31) / 32, dim3(32, 8), 0, stream_1>>>(gamma_grad, betta_grad, out_grad, inp,
                                                                              vars, means, batch_size, hidden_dim);
  ker_ln_bw_dinp<<<batch_size, hidden_dim >= 1024 ? 256 : 64, 0, stream_2>>>(inp_grad, out_grad, inp, gamma, vars, means,
                                                                          hidden_dim);
}
