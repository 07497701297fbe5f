#include <cuda_runtime.h>
#include <math.h>

constexpr int BLOCK = 128;

__device__ float block_max(float value, float *slots) {
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, step));
  if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = value;
  __syncthreads();
  value = slots[0];
  for (int i = 1; i < BLOCK / 32; i++) value = fmaxf(value, slots[i]);
  __syncthreads();
  return value;
}

__device__ float block_sum(float value, float *slots) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffff, value, step);
  if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0.f;
  for (int i = 0; i < BLOCK / 32; i++) value += slots[i];
  __syncthreads();
  return value;
}

__global__ void ker_attn_softmax(float *inp, const float *attn_mask, int nhead, int from_len, int to_len,
                                 bool mask_future) {
  __shared__ float slots[BLOCK / 32];
  const int row = blockIdx.x;
  const int query = row % from_len;
  const int batch = row / (from_len * nhead);
  float *x = inp + (size_t)row * to_len;
  float largest = -INFINITY;
  for (int j = threadIdx.x; j < to_len; j += BLOCK) {
    float value = x[j];
    if (attn_mask) value += attn_mask[batch * to_len + j];
    if (mask_future && j > query) value = -INFINITY;
    x[j] = value;
    largest = fmaxf(largest, value);
  }
  largest = block_max(largest, slots);
  float sum = 0.f;
  for (int j = threadIdx.x; j < to_len; j += BLOCK) {
    float value = largest == -INFINITY ? 0.f : expf(x[j] - largest);
    x[j] = value;
    sum += value;
  }
  sum = block_sum(sum, slots);
  for (int j = threadIdx.x; j < to_len; j += BLOCK) {
    x[j] = x[j] / (sum + 1e-8f);
  }
}

extern "C" void launch_attn_softmax(float *inp, const float *attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  const int rows = batch_size * nhead * from_len;
  ker_attn_softmax<<<rows, BLOCK, 0, stream>>>(inp, attn_mask, nhead, from_len, to_len, mask_future);
}

__global__ void ker_attn_softmax_bw(float *grad, const float *soft, int rows, int softmax_len) {
  const int lane = threadIdx.x % 32;
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  grad += (size_t)row * softmax_len;
  soft += (size_t)row * softmax_len;
  float sum = 0.f;
  for (int j = lane; j < softmax_len; j += 32) sum += grad[j] * soft[j];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
  for (int j = lane; j < softmax_len; j += 32) grad[j] = soft[j] * (grad[j] - sum);
}

extern "C" void launch_attn_softmax_bw(float *out_grad, const float *soft_inp, int rows, int softmax_len,
                                       cudaStream_t stream) {
  ker_attn_softmax_bw<<<(rows + 3) / 4, 128, 0, stream>>>(out_grad, soft_inp, rows, softmax_len);
}
