// CUB's warp reduction, a warp per row on a grid that strides over the rows.
#include <cub/warp/warp_reduce.cuh>
#include <cuda_runtime.h>

constexpr int WARPS = 4;

__global__ void gradient(float* grad, const float* soft, int rows, int keys) {
  using Reduce = cub::WarpReduce<float>;
  __shared__ typename Reduce::TempStorage storage[WARPS];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int row = blockIdx.x * WARPS + warp; row < rows; row += gridDim.x * WARPS) {
    float* g = grad + (size_t)row * keys;
    const float* y = soft + (size_t)row * keys;
    float sum = 0.0f;
    for (int j = lane; j < keys; j += 32) sum = fmaf(g[j], y[j], sum);
    sum = __shfl_sync(0xffffffff, Reduce(storage[warp]).Sum(sum), 0);
    for (int j = lane; j < keys; j += 32) g[j] = y[j] * (g[j] - sum);
  }
}

extern "C" void launch_attn_softmax_bw(float* out_grad, const float* soft_inp, int rows, int softmax_len,
                                       cudaStream_t stream) {
  gradient<<<min((rows + WARPS - 1) / WARPS, 512), 32 * WARPS, 0, stream>>>(out_grad, soft_inp, rows, softmax_len);
}
