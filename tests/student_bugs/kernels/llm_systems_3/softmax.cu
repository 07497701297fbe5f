#include <cuda_runtime.h>
#include <math.h>

#define NT 128

// returns the max over the block to every thread
__device__ float blockMax(float v) {
  __shared__ float buf[NT];
  int t = threadIdx.x;
  buf[t] = v;
  __syncthreads();
  for (int s = NT / 2; s > 0; s >>= 1) {
    if (t < s) buf[t] = fmaxf(buf[t], buf[t + s]);
    __syncthreads();
  }
  float r = buf[0];
  __syncthreads();
  return r;
}

__device__ float blockSum(float v, float* buf) {
  int t = threadIdx.x;
  buf[t] = v;
  __syncthreads();
  for (int s = NT / 2; s > 0; s >>= 1) {
    if (t < s) buf[t] += buf[t + s];
    __syncthreads();
  }
  float r = buf[0];
  __syncthreads();
  return r;
}

__global__ void softmaxRow(float* inp, const float* attn_mask, int nhead, int from_len, int to_len, bool mask_future) {
  __shared__ float buf[NT];
  int bid = blockIdx.x;
  int query = bid % from_len;
  int batch = bid / (from_len * nhead);
  float* row = inp + (size_t)bid * to_len;
  float m = -INFINITY;
  for (int j = threadIdx.x; j < to_len; j += NT) {
    float z = row[j];
    if (attn_mask) z += attn_mask[batch * to_len + j];
    if (mask_future && j > query) z = -INFINITY;
    row[j] = z;
    m = fmaxf(m, z);
  }
  m = blockMax(m);
  float total = 0.0f;
  for (int j = threadIdx.x; j < to_len; j += NT) {
    float e = m == -INFINITY ? 0.0f : expf(row[j] - m);
    row[j] = e;
    total += e;
  }
  total = blockSum(total, buf);
  for (int j = threadIdx.x; j < to_len; j += NT) row[j] = row[j] / (total + 1e-8f);
}

extern "C" void launch_attn_softmax(float* inp, const float* attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  int nrows = batch_size * nhead * from_len;
  softmaxRow<<<nrows, NT, 0, stream>>>(inp, attn_mask, nhead, from_len, to_len, mask_future);
}

__global__ void softmaxGrad(float* grad, const float* soft, int rows, int len) {
  int lane = threadIdx.x % 32;
  int r = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (r >= rows) return;
  float* g = grad + (size_t)r * len;
  const float* s = soft + (size_t)r * len;
  float dot = 0.0f;
  for (int j = lane; j < len; j += 32) dot += g[j] * s[j];
  for (int k = 16; k > 0; k /= 2) dot += __shfl_xor_sync(0xffffffff, dot, k);
  for (int j = lane; j < len; j += 32) g[j] = s[j] * (g[j] - dot);
}

extern "C" void launch_attn_softmax_bw(float* out_grad, const float* soft_inp, int rows, int softmax_len,
                                       cudaStream_t stream) {
  softmaxGrad<<<(rows + 3) / 4, 128, 0, stream>>>(out_grad, soft_inp, rows, softmax_len);
}
