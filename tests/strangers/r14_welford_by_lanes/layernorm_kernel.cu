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
                               const float* bias, int rows, int hidden) {
  const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;  // whole warps
  const float* x = inp + (size_t)row * hidden;
  float count = 0.0f, mean = 0.0f, m2 = 0.0f;
  for (int i = lane; i < hidden; i += 32) {
    count += 1.0f;
    const float d = x[i] - mean;
    mean += d / count;
    m2 += d * (x[i] - mean);
  }
  for (int d = 16; d; d /= 2) {
    const float c = __shfl_xor_sync(0xffffffffu, count, d), mm = __shfl_xor_sync(0xffffffffu, mean, d),
                q = __shfl_xor_sync(0xffffffffu, m2, d);
    const float all = count + c;
    if (all > 0.0f) {
      const bool low = (lane & d) == 0;  // both lanes of a pair compute the same
      const float a = low ? count : c, b = low ? c : count, ma = low ? mean : mm, mb = low ? mm : mean;
      const float delta = mb - ma;
      mean = ma + delta * (b / all);
      m2 = m2 + q + delta * delta * (a * (b / all));
      count = all;
    }
  }
  const float var = m2 / hidden, r = rsqrtf(var + 1e-8f);
  for (int i = lane; i < hidden; i += 32) ln_res[(size_t)row * hidden + i] = (x[i] - mean) * r * scale[i] + bias[i];
  if (lane == 0) vars[row] = var, means[row] = mean;
}

extern "C" void launch_layernorm(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                                 const float* bias, int batch_size, int hidden_dim, cudaStream_t stream) {
  ker_layer_norm<<<(batch_size + 3) / 4, 128, 0, stream>>>(ln_res, vars, means, inp, scale, bias, batch_size, hidden_dim);
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
