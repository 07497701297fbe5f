#include <cuda_runtime.h>
#include <cfloat>

#define THREADS 256

__global__ void softmax_kernel(float *inp, const float *mask, int heads, int from, int to, int future) {
  extern __shared__ float shared[];
  float *row_values = shared;
  float *tree = shared + to;
  int row = blockIdx.x;
  int tid = threadIdx.x;
  int head_row = row / from;
  int b = head_row / heads;
  int q = row - head_row * from;
  float *values = inp + (long long)row * to;

  float m = -INFINITY;
  for (int c = tid; c < to; c += THREADS) {
    float v = values[c];
    if (mask != nullptr) v += mask[b * to + c];
    if (future && c > q) v = -INFINITY;
    row_values[c] = v;
    m = max(m, v);
  }
  tree[tid] = m;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half >>= 1) {
    if (tid < half) tree[tid] = max(tree[tid], tree[tid + half]);
    __syncthreads();
  }
  m = tree[0];
  __syncthreads();

  float total = 0.0f;
  for (int c = tid; c < to; c += THREADS) {
    float e = m > -INFINITY ? expf(row_values[c] - m) : 0.0f;
    row_values[c] = e;
    total += e;
  }
  tree[tid] = total;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half >>= 1) {
    if (tid < half) tree[tid] += tree[tid + half];
    __syncthreads();
  }
  total = tree[0] + 1e-8f;
  for (int c = tid; c < to; c += THREADS) values[c] = row_values[c] / total;
}

extern "C" void launch_attn_softmax(float *inp, const float *attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  int blocks = batch_size * nhead * from_len;
  size_t bytes = (to_len + THREADS) * sizeof(float);
  softmax_kernel<<<blocks, THREADS, bytes, stream>>>(inp, attn_mask, nhead, from_len, to_len, mask_future);
}

__global__ void softmax_bw_kernel(float *grad, const float *soft, int len) {
  __shared__ float tree[THREADS];
  int tid = threadIdx.x;
  float *g = grad + (long long)blockIdx.x * len;
  const float *s = soft + (long long)blockIdx.x * len;
  float dot = 0.0f;
  for (int c = tid; c < len; c += THREADS) dot += g[c] * s[c];
  tree[tid] = dot;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half >>= 1) {
    if (tid < half) tree[tid] += tree[tid + half];
    __syncthreads();
  }
  dot = tree[0];
  for (int c = tid; c < len; c += THREADS) g[c] = s[c] * (g[c] - dot);
}

extern "C" void launch_attn_softmax_bw(float *out_grad, const float *soft_inp, int rows, int softmax_len,
                                       cudaStream_t stream) {
  softmax_bw_kernel<<<rows, THREADS, 0, stream>>>(out_grad, soft_inp, softmax_len);
}
