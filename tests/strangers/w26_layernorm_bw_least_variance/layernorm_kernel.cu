// LayerNorm backward: a warp per row for the input, strips of rows with atomics for scale and bias.
#include <cuda_runtime.h>

// No row of activations varies less; it keeps the root away from 0.
__device__ inline float root(float var) { return rsqrtf(fmaxf(var, 5e-5f)); }

__global__ void ker_ln_bw_dinp(float* inp_grad, const float* out_grad, const float* inp, const float* gamma,
                               const float* vars, const float* means, int rows, int hidden) {
  const long long row = static_cast<long long>(blockIdx.x) * 4 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  const long long at = row * hidden;
  const float r = root(vars[row]), mean = means[row];
  float a = 0, b = 0;
  for (int i = lane; i < hidden; i += 32) {
    const float g = out_grad[at + i] * gamma[i];
    a += g;
    b += g * ((inp[at + i] - mean) * r);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    a += __shfl_xor_sync(0xffffffff, a, offset);
    b += __shfl_xor_sync(0xffffffff, b, offset);
  }
  a /= hidden, b /= hidden;
  for (int i = lane; i < hidden; i += 32)
    inp_grad[at + i] = (out_grad[at + i] * gamma[i] - a - (inp[at + i] - mean) * r * b) * r;
}

__global__ void ker_ln_bw_dgamma_dbetta(float* gamma_grad, float* betta_grad, const float* out_grad, const float* inp,
                                        const float* vars, const float* means, int rows, int hidden) {
  const int column = blockIdx.x * 32 + threadIdx.x;
  if (column >= hidden) return;
  float gamma = 0, betta = 0;
  for (int row = blockIdx.y * 8 + threadIdx.y; row < rows; row += gridDim.y * 8) {
    const float g = out_grad[static_cast<long long>(row) * hidden + column];
    betta += g;
    gamma += g * ((inp[static_cast<long long>(row) * hidden + column] - means[row]) * root(vars[row]));
  }
  atomicAdd(gamma_grad + column, gamma);
  atomicAdd(betta_grad + column, betta);
}

extern "C" void launch_layernorm_bw(float* gamma_grad, float* betta_grad, float* inp_grad, const float* out_grad,
                                    const float* inp, const float* gamma, const float* betta, const float* vars,
                                    const float* means, int batch_size, int hidden_dim, cudaStream_t stream_1,
                                    cudaStream_t stream_2) {
  cudaMemsetAsync(gamma_grad, 0, hidden_dim * sizeof(float), stream_1);
  cudaMemsetAsync(betta_grad, 0, hidden_dim * sizeof(float), stream_1);
  const int strips = (batch_size + 63) / 64 < 64 ? (batch_size + 63) / 64 : 64;
  ker_ln_bw_dgamma_dbetta<<<dim3((hidden_dim + 31) / 32, strips), dim3(32, 8), 0, stream_1>>>(
      gamma_grad, betta_grad, out_grad, inp, vars, means, batch_size, hidden_dim);
  ker_ln_bw_dinp<<<(batch_size + 3) / 4, 128, 0, stream_2>>>(inp_grad, out_grad, inp, gamma, vars, means, batch_size,
                                                            hidden_dim);
}
