// A block per row, grid-stride over rows, the row in shared memory, a tree with barriers; -1e8 hides the future.
// Short rows get a block of a warp.
#include <cuda_runtime.h>

__global__ void softmax(float* inp, const float* mask, int rows, int per_mask, int queries, int keys, bool future) {
  __shared__ float held[2048], tree[256];
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    float* x = inp + (size_t)row * keys;
    float value = -1e38f;
    for (int j = threadIdx.x; j < keys; j += blockDim.x) {
      held[j] = future && j > row % queries ? -1e8f : x[j] + (mask ? mask[(size_t)(row / per_mask) * keys + j] : 0.0f);
      value = fmaxf(value, held[j]);
    }
    tree[threadIdx.x] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) tree[threadIdx.x] = fmaxf(tree[threadIdx.x], tree[threadIdx.x + half]);
      __syncthreads();
    }
    const float largest = tree[0];
    __syncthreads();
    value = 0.0f;
    for (int j = threadIdx.x; j < keys; j += blockDim.x) {
      held[j] = expf(held[j] - largest);
      value += held[j];
    }
    tree[threadIdx.x] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) tree[threadIdx.x] += tree[threadIdx.x + half];
      __syncthreads();
    }
    for (int j = threadIdx.x; j < keys; j += blockDim.x) x[j] = held[j] / tree[0];
    __syncthreads();
  }
}

extern "C" void launch_attn_softmax(float* inp, const float* attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  const int rows = batch_size * nhead * from_len;
  const int blocks = rows < 300 ? rows : 300;
  softmax<<<blocks, to_len <= 32 ? 32 : 256, 0, stream>>>(inp, attn_mask, rows, nhead * from_len, from_len, to_len, mask_future);
}
