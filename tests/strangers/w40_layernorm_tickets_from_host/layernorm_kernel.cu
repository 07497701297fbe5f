// LayerNorm forward: a fixed number of warps, each of which takes the next row from a counter.
#include <cuda_runtime.h>

__device__ unsigned long long ticket = 0;

__global__ void ker_layer_norm(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                               const float* bias, int rows, int hidden, unsigned long long begin) {
  const int lane = threadIdx.x % 32;
  while (true) {
    long long row = 0;
    if (lane == 0) row = static_cast<long long>(atomicAdd(&ticket, 1ull) - begin);
    row = __shfl_sync(0xffffffff, row, 0);
    if (row < 0 || row >= rows) return;
    const float* x = inp + row * hidden;
    float sum = 0;
    for (int i = lane; i < hidden; i += 32) sum += x[i];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
    const float mean = sum / hidden;
    float squares = 0;
    for (int i = lane; i < hidden; i += 32) squares += (x[i] - mean) * (x[i] - mean);
    for (int offset = 16; offset > 0; offset /= 2) squares += __shfl_xor_sync(0xffffffff, squares, offset);
    const float var = squares / hidden, r = rsqrtf(var + 1e-8f);
    if (lane == 0) {
      means[row] = mean;
      vars[row] = var;
    }
    for (int i = lane; i < hidden; i += 32) ln_res[row * hidden + i] = (x[i] - mean) * r * scale[i] + bias[i];
  }
}

extern "C" void launch_layernorm(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                                 const float* bias, int batch_size, int hidden_dim, cudaStream_t stream) {
  static unsigned long long begin = 0;
  const int blocks = (batch_size + 7) / 8 < 432 ? (batch_size + 7) / 8 : 432;
  ker_layer_norm<<<blocks, 256, 0, stream>>>(ln_res, vars, means, inp, scale, bias, batch_size, hidden_dim, begin);
  begin += batch_size + 8ull * blocks;  // each warp takes one ticket too many
}
