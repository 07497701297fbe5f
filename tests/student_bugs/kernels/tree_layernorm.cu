#include <cuda_runtime.h>

#define THREADS 256

__device__ void add_up(float *tree) {
  for (int half = THREADS / 2; half > 0; half >>= 1) {
    __syncthreads();
    if (threadIdx.x < half) tree[threadIdx.x] += tree[threadIdx.x + half];
  }
  __syncthreads();
}

__global__ void forward(float *out, float *vars, float *means, const float *inp, const float *scale, const float *bias,
                        int width) {
  __shared__ float tree[THREADS];
  int tid = threadIdx.x;
  long long start = (long long)blockIdx.x * width;
  float part = 0.0f;
  for (int c = tid; c < width; c += THREADS) part += inp[start + c];
  tree[tid] = part;
  add_up(tree);
  float mean = tree[0] / width;
  __syncthreads();
  part = 0.0f;
  for (int c = tid; c < width; c += THREADS) {
    float d = inp[start + c] - mean;
    part += d * d;
  }
  tree[tid] = part;
  add_up(tree);
  float var = tree[0] / width + 1e-8f;
  float rstd = 1.0f / sqrtf(var);
  for (int c = tid; c < width; c += THREADS) {
    float normed = (inp[start + c] - mean) * rstd;
    out[start + c] = normed * scale[c] + bias[c];
  }
  if (tid == 0) {
    means[blockIdx.x] = mean;
    vars[blockIdx.x] = var;
  }
}

extern "C" void launch_layernorm(float *ln_res, float *vars, float *means, const float *inp, const float *scale,
                                 const float *bias, int batch_size, int hidden_dim, cudaStream_t stream) {
  forward<<<batch_size, THREADS, 0, stream>>>(ln_res, vars, means, inp, scale, bias, hidden_dim);
}

__global__ void gamma_betta(float *gamma_grad, float *betta_grad, const float *out_grad, const float *inp,
                            const float *vars, const float *means, int rows, int width) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= width) return;
  float g = 0.0f, b = 0.0f;
  for (int r = 0; r < rows; r++) {
    float dy = out_grad[(long long)r * width + c];
    g += dy * (inp[(long long)r * width + c] - means[r]) / sqrtf(vars[r]);
    b += dy;
  }
  gamma_grad[c] = g;
  betta_grad[c] = b;
}

__global__ void input_grad(float *inp_grad, const float *out_grad, const float *inp, const float *gamma,
                           const float *vars, const float *means, int width) {
  __shared__ float first[THREADS];
  __shared__ float second[THREADS];
  int tid = threadIdx.x;
  long long start = (long long)blockIdx.x * width;
  float mean = means[blockIdx.x];
  float rstd = 1.0f / sqrtf(vars[blockIdx.x]);
  float s1 = 0.0f, s2 = 0.0f;
  for (int c = tid; c < width; c += THREADS) {
    float dxhat = out_grad[start + c] * gamma[c];
    s1 += dxhat;
    s2 += dxhat * (inp[start + c] - mean) * rstd;
  }
  first[tid] = s1;
  second[tid] = s2;
  add_up(first);
  add_up(second);
  s1 = first[0];
  s2 = second[0];
  for (int c = tid; c < width; c += THREADS) {
    float xhat = (inp[start + c] - mean) * rstd;
    inp_grad[start + c] = (out_grad[start + c] * gamma[c] - (s1 + xhat * s2) / width) * rstd;
  }
}

extern "C" void launch_layernorm_bw(float *gamma_grad, float *betta_grad, float *inp_grad, const float *out_grad,
                                    const float *inp, const float *gamma, const float *betta, const float *vars,
                                    const float *means, int batch_size, int hidden_dim, cudaStream_t stream_1,
                                    cudaStream_t stream_2) {
  gamma_betta<<<(hidden_dim + 127) / 128, 128, 0, stream_1>>>(gamma_grad, betta_grad, out_grad, inp, vars, means,
                                                              batch_size, hidden_dim);
  input_grad<<<batch_size, THREADS, 0, stream_2>>>(inp_grad, out_grad, inp, gamma, vars, means, hidden_dim);
}
