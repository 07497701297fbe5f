// LayerNorm forward: a warp per row, one pass, sums in double.
#include <cuda_runtime.h>

__global__ void ker_layer_norm(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                               const float* bias, int rows, int hidden) {
  const long long row = static_cast<long long>(blockIdx.x) * 4 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  const float* x = inp + row * hidden;
  double sum = 0, squares = 0;
  for (int i = lane; i < hidden; i += 32) {
    const double value = x[i];
    sum += value;
    squares = fma(value, value, squares);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(0xffffffff, sum, offset);
    squares += __shfl_xor_sync(0xffffffff, squares, offset);
  }
  const double mean = sum / hidden, var = fmax(squares / hidden - mean * mean, 0.0);
  const float root = static_cast<float>(1 / sqrt(var + 1e-8));
  if (lane == 0) {
    means[row] = static_cast<float>(mean);
    vars[row] = static_cast<float>(var);
  }
  for (int i = lane; i < hidden; i += 32)
    ln_res[row * hidden + i] = fmaf(static_cast<float>(x[i] - mean) * root, scale[i], bias[i]);
}

extern "C" void launch_layernorm(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                                 const float* bias, int batch_size, int hidden_dim, cudaStream_t stream) {
  ker_layer_norm<<<(batch_size + 3) / 4, 128, 0, stream>>>(ln_res, vars, means, inp, scale, bias, batch_size, hidden_dim);
}
