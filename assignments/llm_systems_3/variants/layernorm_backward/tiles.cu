// The handout's plan: tiles of 32 rows by 32 columns, transposed through padded shared memory; a block per row for dx,
// of a warp where rows are short.
#include <cuda_runtime.h>

__global__ void columns_kernel(float* dgamma, float* dbeta, const float* dy, const float* x, const float* vars,
                               const float* means, int rows, int n) {
  __shared__ float gammas[32][33], betas[32][33];
  const int column = blockIdx.x * 32 + threadIdx.x;
  float a = 0.0f, b = 0.0f;
  if (column < n) {
    for (int row = threadIdx.y; row < rows; row += 32) {
      const size_t at = (size_t)row * n + column;
      a += dy[at] * (x[at] - means[row]) * rsqrtf(vars[row] + 1e-8f);
      b += dy[at];
    }
  }
  gammas[threadIdx.x][threadIdx.y] = a;
  betas[threadIdx.x][threadIdx.y] = b;
  __syncthreads();
  a = gammas[threadIdx.y][threadIdx.x];
  b = betas[threadIdx.y][threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) {
    a += __shfl_down_sync(0xffffffff, a, offset);
    b += __shfl_down_sync(0xffffffff, b, offset);
  }
  const int out = blockIdx.x * 32 + threadIdx.y;
  if (threadIdx.x == 0 && out < n) {
    dgamma[out] = a;
    dbeta[out] = b;
  }
}

__global__ void rows_kernel(float* dx, const float* dy, const float* x, const float* gamma, const float* vars,
                            const float* means, int n) {
  __shared__ float sums[2][4];
  const size_t start = (size_t)blockIdx.x * n;
  const float mean = means[blockIdx.x], inverse = rsqrtf(vars[blockIdx.x] + 1e-8f);
  float a = 0.0f, b = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float g = dy[start + i] * gamma[i];
    a += g;
    b += g * ((x[start + i] - mean) * inverse);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    a += __shfl_down_sync(0xffffffff, a, offset);
    b += __shfl_down_sync(0xffffffff, b, offset);
  }
  if (threadIdx.x % 32 == 0) {
    sums[0][threadIdx.x / 32] = a;
    sums[1][threadIdx.x / 32] = b;
  }
  __syncthreads();
  a = b = 0.0f;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) {
    a += sums[0][warp] / n;
    b += sums[1][warp] / n;
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float xhat = (x[start + i] - mean) * inverse;
    dx[start + i] = (dy[start + i] * gamma[i] - (a + xhat * b)) * inverse;
  }
}

extern "C" void launch_layernorm_bw(float* gamma_grad, float* betta_grad, float* inp_grad, const float* out_grad,
                                    const float* inp, const float* gamma, const float* betta, const float* vars,
                                    const float* means, int batch_size, int hidden_dim, cudaStream_t stream_1,
                                    cudaStream_t stream_2) {
  columns_kernel<<<(hidden_dim + 31) / 32, dim3(32, 32), 0, stream_1>>>(gamma_grad, betta_grad, out_grad, inp, vars,
                                                                        means, batch_size, hidden_dim);
  const int threads = hidden_dim <= 32 ? 32 : 128;
  rows_kernel<<<batch_size, threads, 0, stream_2>>>(inp_grad, out_grad, inp, gamma, vars, means, hidden_dim);
}
