// A warp per row, float4 loads, E[x^2] - E[x]^2 by one shuffle tree for both sums, fast intrinsics, y as one fma.
#include <cuda_runtime.h>

__global__ void normalise(float4* y, float* vars, float* means, const float4* inp, const float4* scale,
                          const float4* bias, int rows, int fours) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  const float4* x = inp + (size_t)row * fours;
  float sum = 0.0f, square = 0.0f;
  for (int i = lane; i < fours; i += 32) {
    const float4 v = x[i];
    sum += v.x + v.y + v.z + v.w;
    square += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(0xffffffff, sum, offset);
    square += __shfl_xor_sync(0xffffffff, square, offset);
  }
  const float mean = __fdividef(sum, 4.0f * fours);
  const float variance = fmaxf(__fdividef(square, 4.0f * fours) - mean * mean, 0.0f);
  const float inverse = rsqrtf(variance + 1e-8f);
  if (lane == 0) {
    means[row] = mean;
    vars[row] = variance;
  }
  for (int i = lane; i < fours; i += 32) {
    const float4 v = x[i], s = scale[i], b = bias[i];
    y[(size_t)row * fours + i] = make_float4(
        fmaf((v.x - mean) * inverse, s.x, b.x), fmaf((v.y - mean) * inverse, s.y, b.y),
        fmaf((v.z - mean) * inverse, s.z, b.z), fmaf((v.w - mean) * inverse, s.w, b.w));
  }
}

extern "C" void launch_layernorm(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                                 const float* bias, int batch_size, int hidden_dim, cudaStream_t stream) {
  normalise<<<(batch_size + 3) / 4, 128, 0, stream>>>(
      reinterpret_cast<float4*>(ln_res), vars, means, reinterpret_cast<const float4*>(inp),
      reinterpret_cast<const float4*>(scale), reinterpret_cast<const float4*>(bias), batch_size, hidden_dim / 4);
}
