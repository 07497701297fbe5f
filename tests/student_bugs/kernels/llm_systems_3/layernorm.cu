#include <cuda_runtime.h>

const float eps = 1e-8f;

__device__ float warp_add(float x) {
  x += __shfl_down_sync(~0u, x, 16);
  x += __shfl_down_sync(~0u, x, 8);
  x += __shfl_down_sync(~0u, x, 4);
  x += __shfl_down_sync(~0u, x, 2);
  x += __shfl_down_sync(~0u, x, 1);
  return x;
}

// 8 warps; everybody gets the sum
__device__ float all_add(float x, float* slots) {
  x = warp_add(x);
  if ((threadIdx.x & 31) == 0) slots[threadIdx.x >> 5] = x;
  __syncthreads();
  float s = 0;
  for (int w = 0; w < 8; w++) s += slots[w];
  __syncthreads();
  return s;
}

__global__ void ln_fwd(float* out, float* vars, float* means, const float4* inp, const float4* scale,
                       const float4* bias, int n4) {
  __shared__ float slots[8];
  const float4* x = inp + (size_t)blockIdx.x * n4;
  float4* y = (float4*)out + (size_t)blockIdx.x * n4;
  const float n = 4.0f * n4;
  float s = 0;
  for (int i = threadIdx.x; i < n4; i += 256) {
    float4 v = x[i];
    s += v.x + v.y + v.z + v.w;
  }
  const float mu = all_add(s, slots) / n;
  float q = 0;
  for (int i = threadIdx.x; i < n4; i += 256) {
    float4 v = x[i];
    q += (v.x - mu) * (v.x - mu) + (v.y - mu) * (v.y - mu) + (v.z - mu) * (v.z - mu) + (v.w - mu) * (v.w - mu);
  }
  const float var = all_add(q, slots) / n;
  if (threadIdx.x == 0) {
    means[blockIdx.x] = mu;
    vars[blockIdx.x] = var;
  }
  const float inv = rsqrtf(var + eps);
  for (int i = threadIdx.x; i < n4; i += 256) {
    float4 v = x[i], g = scale[i], b = bias[i];
    v.x = (v.x - mu) * inv * g.x + b.x;
    v.y = (v.y - mu) * inv * g.y + b.y;
    v.z = (v.z - mu) * inv * g.z + b.z;
    v.w = (v.w - mu) * inv * g.w + b.w;
    y[i] = v;
  }
}

extern "C" void launch_layernorm(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                                 const float* bias, int batch_size, int hidden_dim, cudaStream_t stream) {
  ln_fwd<<<batch_size, 256, 0, stream>>>(ln_res, vars, means, (const float4*)inp, (const float4*)scale,
                                         (const float4*)bias, hidden_dim / 4);
}

#define ROWS_PER_BLOCK 16

// a thread per column; a block goes over 16 rows
__global__ void ln_bwd_params(float* dg, float* db, const float* dy, const float* x, const float* vars,
                              const float* means, int rows, int width) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col >= width) return;
  int first = blockIdx.y * ROWS_PER_BLOCK;
  int last = min(first + ROWS_PER_BLOCK, rows);
  float a = 0.0f, b = 0.0f;
  for (int r = first; r < last; ++r) {
    float xhat = (x[(size_t)r * width + col] - means[r]) * rsqrtf(vars[r] + eps);
    a += dy[(size_t)r * width + col] * xhat;
    b += dy[(size_t)r * width + col];
  }
  atomicAdd(&dg[col], a);
  atomicAdd(&db[col], b);
}

__global__ void ln_bwd_input(float* dx, const float* dy, const float* x, const float* gamma, const float* vars,
                             const float* means, int width) {
  __shared__ float slots[8];
  int r = blockIdx.x;
  size_t base = (size_t)r * width;
  float inv = rsqrtf(vars[r] + eps), mu = means[r];
  float s1 = 0, s2 = 0;
  for (int i = threadIdx.x; i < width; i += 256) {
    float g = dy[base + i] * gamma[i];
    s1 += g;
    s2 += g * (x[base + i] - mu) * inv;
  }
  s1 = all_add(s1, slots);
  s2 = all_add(s2, slots);
  for (int i = threadIdx.x; i < width; i += 256) {
    float g = dy[base + i] * gamma[i];
    float xhat = (x[base + i] - mu) * inv;
    dx[base + i] = inv * (g - s1 / width - xhat * s2 / width);
  }
}

extern "C" void launch_layernorm_bw(float* gamma_grad, float* betta_grad, float* inp_grad, const float* out_grad,
                                    const float* inp, const float* gamma, const float* betta, const float* vars,
                                    const float* means, int batch_size, int hidden_dim, cudaStream_t stream_1,
                                    cudaStream_t stream_2) {
  cudaMemsetAsync(gamma_grad, 0, hidden_dim * sizeof(float), stream_1);
  cudaMemsetAsync(betta_grad, 0, hidden_dim * sizeof(float), stream_1);
  dim3 grid((hidden_dim + 127) / 128, (batch_size + ROWS_PER_BLOCK - 1) / ROWS_PER_BLOCK);
  ln_bwd_params<<<grid, 128, 0, stream_1>>>(gamma_grad, betta_grad, out_grad, inp, vars, means, batch_size,
                                            hidden_dim);
  ln_bwd_input<<<batch_size, 256, 0, stream_2>>>(inp_grad, out_grad, inp, gamma, vars, means, hidden_dim);
}
