// LayerNorm over the last axis, forward (problem 3) and backward (problem 4). ASSIGNMENT.md says what each must do.
// Write the bodies marked YOUR CODE HERE. You may change everything but the two launch_ functions' names and parameters.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include "block_reduce.h"

namespace cg = cooperative_groups;

[[maybe_unused]] constexpr float EPSILON = 1e-8f;
constexpr int TILE = 32;

// One block per row. hidden_size counts float4s, a quarter of hidden_dim: hidden sizes are multiples of 4.
//
// ln_res [rows, hidden], vars [rows], means [rows] are written; inp [rows, hidden], scale [hidden], bias [hidden] are read
__global__ void ker_layer_norm(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                               const float* bias, int hidden_size) {
  [[maybe_unused]] const float4* row =
      reinterpret_cast<const float4*>(inp) + static_cast<size_t>(blockIdx.x) * hidden_size;

  // YOUR CODE HERE (layernorm_forward)
  // 1. Sums of x and of x * x over the row; one block_reduce<Sum, 2> for both.
  // 2. Mean and variance. A variance of E[x^2] - E[x]^2 may come out below zero: what then?
  // 3. Normalise, scale, shift, four elements at a time.
}

extern "C" void launch_layernorm(float* ln_res, float* vars, float* means, const float* inp, const float* scale,
                                 const float* bias, int batch_size, int hidden_dim, cudaStream_t stream) {
  // YOUR CODE HERE (layernorm_forward): choose threads per block (whole warps, at most 1024) and launch on `stream`.
}

// Gradients of scale and bias: sums over rows. A block of TILE x TILE threads owns TILE columns; its threads walk down
// the rows, then add up through shared memory.
__global__ void ker_ln_bw_dgamma_dbetta(float* gamma_grad, float* betta_grad, const float* out_grad, const float* inp,
                                        const float* vars, const float* means, int rows, int width) {
  [[maybe_unused]] __shared__ float betta_buffer[TILE][TILE + 1];
  [[maybe_unused]] __shared__ float gamma_buffer[TILE][TILE + 1];
  const auto block = cg::this_thread_block();
  [[maybe_unused]] const auto tile = cg::tiled_partition<TILE>(block);

  // YOUR CODE HERE (layernorm_backward)
  // 1. Partial sums of dy and dy * xhat in registers, for the rows y, y + TILE, y + 2 TILE, ...
  // 2. Into shared memory, transposed; barrier; add up with tile.shfl_down.
  // 3. One thread per column writes. Think of column counts that TILE does not divide.
}

// Gradient of the input. One block per row; hidden_size counts float4s.
__global__ void ker_ln_bw_dinp(float* inp_grad, const float* out_grad, const float* inp, const float* gamma,
                               const float* vars, const float* means, int hidden_size) {
  // YOUR CODE HERE (layernorm_backward)
  // 1. g = dy * gamma and xhat.
  // 2. Sums of g and g * xhat over the row: one block_reduce<Sum, 2>.
  // 3. (g - mean(g) - xhat * mean(g * xhat)) / sigma.
}

extern "C" void launch_layernorm_bw(float* gamma_grad, float* betta_grad, float* inp_grad, const float* out_grad,
                                    const float* inp, const float* gamma, const float* betta, const float* vars,
                                    const float* means, int batch_size, int hidden_dim, cudaStream_t stream_1,
                                    cudaStream_t stream_2) {
  // The two kernels do not need each other: one on stream_1, the other on stream_2.
  // YOUR CODE HERE (layernorm_backward)
}
