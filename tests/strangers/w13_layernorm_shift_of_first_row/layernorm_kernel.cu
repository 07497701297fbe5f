// LayerNorm forward. Sums of x - shift and (x - shift)^2 lose no digits to a large mean. A warp has eight rows, and
// rows of a batch look alike, so one shift does for all of them.
#include <cuda_runtime.h>

constexpr int ROWS = 8;

__global__ void ker_layer_norm(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                               const float* bias, int rows, int quarter) {
  const int lane = threadIdx.x % 32;
  const long long first = (static_cast<long long>(blockIdx.x) * 4 + threadIdx.x / 32) * ROWS;
  if (first >= rows) return;
  const float4* in = reinterpret_cast<const float4*>(inp);
  float4* out = reinterpret_cast<float4*>(ln_res);
  const float shift = inp[first * quarter * 4];
  for (long long row = first; row < first + ROWS && row < rows; ++row) {
    float sum = 0, squares = 0;
    for (int i = lane; i < quarter; i += 32) {
      float4 v = in[row * quarter + i];
      v.x -= shift, v.y -= shift, v.z -= shift, v.w -= shift;
      sum += (v.x + v.y) + (v.z + v.w);
      squares += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
      sum += __shfl_xor_sync(0xffffffff, sum, offset);
      squares += __shfl_xor_sync(0xffffffff, squares, offset);
    }
    const float away = sum / (4 * quarter), mean = shift + away;
    const float var = fmaxf(squares / (4 * quarter) - away * away, 0.0f);
    if (lane == 0) {
      means[row] = mean;
      vars[row] = var;
    }
    const float r = rsqrtf(var + 1e-8f);
    for (int i = lane; i < quarter; i += 32) {
      const float4 v = in[row * quarter + i];
      const float4 s = reinterpret_cast<const float4*>(scale)[i], b = reinterpret_cast<const float4*>(bias)[i];
      out[row * quarter + i] = make_float4((v.x - mean) * r * s.x + b.x, (v.y - mean) * r * s.y + b.y,
                                           (v.z - mean) * r * s.z + b.z, (v.w - mean) * r * s.w + b.w);
    }
  }
}

extern "C" void launch_layernorm(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                                 const float* bias, int batch_size, int hidden_dim, cudaStream_t stream) {
  const int blocks = (batch_size + 4 * ROWS - 1) / (4 * ROWS);
  ker_layer_norm<<<blocks, 128, 0, stream>>>(ln_res, vars, means, inp, scale, bias, batch_size, hidden_dim / 4);
}
