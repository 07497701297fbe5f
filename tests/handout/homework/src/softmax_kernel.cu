// A complete submission in the form of the original course: host pointers, copies in the launchers.
#include "includes/block_reduce.h"

const float EPSILON = 1e-8f;

namespace course {
namespace cuda {

// One block per query, ITEMS keys per thread.
template <int BLOCK, int ITEMS>
__global__ void ker_attn_softmax(float *inp, const float *attn_mask, int from_len, int to_len, bool mask_future) {
  const int batch = blockIdx.y, query = blockIdx.x % from_len;
  float *row = inp + ((size_t)batch * gridDim.x + blockIdx.x) * to_len;
  const float *mask = attn_mask + (size_t)batch * to_len;
  float value[ITEMS];
  float l_max = -INFINITY;
  for (int i = 0; i < ITEMS; ++i) {
    const int key = i * BLOCK + threadIdx.x;
    value[i] = -INFINITY;
    if (key < to_len && !(mask_future && key > query)) value[i] = row[key] + mask[key];
    l_max = fmaxf(l_max, value[i]);
  }
  l_max = block_reduce<Max>(l_max);
  float l_sum = 0.0f;
  for (int i = 0; i < ITEMS; ++i) {
    value[i] = __expf(value[i] - l_max);
    l_sum += value[i];
  }
  l_sum = block_reduce<Sum>(l_sum);
  for (int i = 0; i < ITEMS; ++i) {
    const int key = i * BLOCK + threadIdx.x;
    if (key < to_len) row[key] = value[i] / (l_sum + EPSILON);
  }
}

extern "C" {

void launch_attn_softmax(float *inp, const float *attn_mask, int batch_size, int nhead, int from_len, int to_len,
                         bool mask_future, cudaStream_t stream) {
  const size_t bytes = sizeof(float) * batch_size * nhead * from_len * to_len;
  const size_t mask_bytes = sizeof(float) * batch_size * to_len;
  float *d_inp, *d_mask;
  cudaMalloc((void **)&d_inp, bytes);
  cudaMalloc((void **)&d_mask, mask_bytes);
  cudaMemcpy(d_inp, inp, bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(d_mask, attn_mask, mask_bytes, cudaMemcpyHostToDevice);
  dim3 grid(nhead * from_len, batch_size);
  if (to_len <= 32) {
    ker_attn_softmax<32, 1><<<grid, 32, 0, stream>>>(d_inp, d_mask, from_len, to_len, mask_future);
  } else if (to_len <= 64) {
    ker_attn_softmax<32, 2><<<grid, 32, 0, stream>>>(d_inp, d_mask, from_len, to_len, mask_future);
  } else if (to_len <= 128) {
    ker_attn_softmax<64, 2><<<grid, 64, 0, stream>>>(d_inp, d_mask, from_len, to_len, mask_future);
  } else if (to_len <= 256) {
    ker_attn_softmax<128, 2><<<grid, 128, 0, stream>>>(d_inp, d_mask, from_len, to_len, mask_future);
  } else if (to_len <= 512) {
    ker_attn_softmax<256, 2><<<grid, 256, 0, stream>>>(d_inp, d_mask, from_len, to_len, mask_future);
  } else if (to_len <= 1024) {
    ker_attn_softmax<512, 2><<<grid, 512, 0, stream>>>(d_inp, d_mask, from_len, to_len, mask_future);
  } else {
    throw std::runtime_error("Sequence length greater than 1024 is currently not supported");
  }
  cudaMemcpy(inp, d_inp, bytes, cudaMemcpyDeviceToHost);
  cudaDeviceSynchronize();
  cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) {
    fprintf(stderr, "launch_attn_softmax: %s\n", cudaGetErrorString(error));
    exit(EXIT_FAILURE);
  }
  cudaFree(d_inp);
  cudaFree(d_mask);
}}

// One warp per row, four rows per block; nobody asks whether the last ones exist.
template <int ITEMS>
__global__ void ker_attn_softmax_bw(float *grad, const float *inp, int softmax_len) {
  const size_t first = (size_t)(blockIdx.x * blockDim.y + threadIdx.y) * softmax_len;
  float grads[ITEMS], soft[ITEMS], sum = 0.0f;
  for (int i = 0; i < ITEMS; ++i) {
    const int key = i * 32 + threadIdx.x;
    grads[i] = key < softmax_len ? grad[first + key] : 0.0f;
    soft[i] = key < softmax_len ? inp[first + key] : 0.0f;
    sum += grads[i] * soft[i];
  }
  sum = warp_reduce<Sum>(sum);
  for (int i = 0; i < ITEMS; ++i) {
    const int key = i * 32 + threadIdx.x;
    if (key < softmax_len) grad[first + key] = soft[i] * (grads[i] - sum);
  }
}

extern "C" {

void launch_attn_softmax_bw(float *out_grad, const float *soft_inp, int rows, int softmax_len, cudaStream_t stream) {
  const size_t bytes = sizeof(float) * rows * softmax_len;
  float *d_grad, *d_soft;
  cudaMalloc((void **)&d_grad, bytes);
  cudaMalloc((void **)&d_soft, bytes);
  cudaMemcpy(d_grad, out_grad, bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(d_soft, soft_inp, bytes, cudaMemcpyHostToDevice);
  dim3 grid((rows + 3) / 4), block(32, 4);
  if (softmax_len <= 32) {
    ker_attn_softmax_bw<1><<<grid, block, 0, stream>>>(d_grad, d_soft, softmax_len);
  } else if (softmax_len <= 128) {
    ker_attn_softmax_bw<4><<<grid, block, 0, stream>>>(d_grad, d_soft, softmax_len);
  } else if (softmax_len <= 512) {
    ker_attn_softmax_bw<16><<<grid, block, 0, stream>>>(d_grad, d_soft, softmax_len);
  } else {
    ker_attn_softmax_bw<64><<<grid, block, 0, stream>>>(d_grad, d_soft, softmax_len);
  }
  cudaMemcpy(out_grad, d_grad, bytes, cudaMemcpyDeviceToHost);
  cudaDeviceSynchronize();
  cudaFree(d_grad);
  cudaFree(d_soft);
}}
}}
