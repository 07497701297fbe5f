// Softmax backward in place: all warps of a block add up a row, then the first one finishes it.
#include <cuda_runtime.h>

__global__ void ker_attn_softmax_bw(float* grad, const float* soft, int length) {
  __shared__ float parts[4];
  float* g = grad + static_cast<long long>(blockIdx.x) * length;
  const float* s = soft + static_cast<long long>(blockIdx.x) * length;
  float sum = 0;
  for (int i = threadIdx.x; i < length; i += 128) sum += g[i] * s[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  if (threadIdx.x >= 32) return;  // the rest is for one warp
  __syncthreads();
  sum = (parts[0] + parts[1]) + (parts[2] + parts[3]);
  for (int i = threadIdx.x; i < length; i += 32) g[i] = s[i] * (g[i] - sum);
}

extern "C" void launch_attn_softmax_bw(float* out_grad, const float* soft_inp, int rows, int softmax_len,
                                       cudaStream_t stream) {
  ker_attn_softmax_bw<<<rows, 128, 0, stream>>>(out_grad, soft_inp, softmax_len);
}
