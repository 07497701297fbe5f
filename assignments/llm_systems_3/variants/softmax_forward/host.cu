// The original handout: host pointers, copies inside the launcher; a block per row, of a warp where that is
// enough, two warp levels.
#include <cuda_runtime.h>

template <class Op>
__device__ float reduced(float value, float neutral, Op op) {
  __shared__ float warps[4];
  for (int offset = 16; offset > 0; offset /= 2) value = op(value, __shfl_down_sync(0xffffffff, value, offset));
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = neutral;
  for (int w = 0; w < blockDim.x / 32; ++w) value = op(value, warps[w]);
  return value;
}

__global__ void softmax(float* inp, const float* mask, int per_mask, int queries, int keys, bool future) {
  const int row = blockIdx.x;
  float* x = inp + (size_t)row * keys;
  float largest = -INFINITY, sum = 0.0f;
  for (int j = threadIdx.x; j < keys; j += blockDim.x) {
    if (mask) x[j] += mask[(size_t)(row / per_mask) * keys + j];
    if (future && j > row % queries) x[j] = -INFINITY;
    largest = fmaxf(largest, x[j]);
  }
  largest = reduced(largest, -INFINITY, [](float a, float b) { return fmaxf(a, b); });
  for (int j = threadIdx.x; j < keys; j += blockDim.x) sum += x[j] = __expf(x[j] - largest);
  sum = reduced(sum, 0.0f, [](float a, float b) { return a + b; });
  for (int j = threadIdx.x; j < keys; j += blockDim.x) x[j] = __fdividef(x[j], sum + 1e-8f);
}

extern "C" void launch_attn_softmax(float* inp, const float* attn_mask, int batch_size, int nhead, int from_len,
                                    int to_len, bool mask_future, cudaStream_t stream) {
  const int rows = batch_size * nhead * from_len;
  const size_t bytes = sizeof(float) * rows * to_len, mask_bytes = sizeof(float) * batch_size * to_len;
  float *x, *mask = nullptr;
  cudaMalloc(&x, bytes);
  cudaMemcpy(x, inp, bytes, cudaMemcpyHostToDevice);
  if (attn_mask) {
    cudaMalloc(&mask, mask_bytes);
    cudaMemcpy(mask, attn_mask, mask_bytes, cudaMemcpyHostToDevice);
  }
  softmax<<<rows, to_len <= 32 ? 32 : 128, 0, stream>>>(x, mask, nhead * from_len, from_len, to_len, mask_future);
  cudaStreamSynchronize(stream);
  cudaMemcpy(inp, x, bytes, cudaMemcpyDeviceToHost);
  cudaFree(x);
  cudaFree(mask);
}
