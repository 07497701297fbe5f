#include <cuda_runtime.h>

template <int R>
__global__ void __launch_bounds__(128)
ker_convolution(float* out, const float* __restrict__ image, const float* __restrict__ weights, int rows, int columns) {
  constexpr int S = 2 * R + 1, OUT = 32 - 2 * R;
  __shared__ float w[S * S];
  if (threadIdx.x < S * S) w[threadIdx.x] = __ldg(weights + threadIdx.x);
  __syncthreads();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int c = (int)(blockIdx.x * 4 + warp) * OUT + lane - R, r0 = blockIdx.y * 16;
  const bool mine = lane >= R && lane < 32 - R && c < columns;
  float sums[S] = {};  // sums[i]: the output row which this image row meets with filter row i
  for (int r = r0 - R; r < r0 + 16 + R; ++r) {
    const float p = r >= 0 && r < rows && c >= 0 && c < columns ? image[(size_t)r * columns + c] : 0.0f;
#pragma unroll
    for (int j = 0; j < S; ++j) {
      const float q = __shfl_sync(0xffffffffu, p, (lane + j - R) & 31);
#pragma unroll
      for (int i = 0; i < S; ++i) sums[i] = fmaf(w[i * S + j], q, sums[i]);
    }
    const int done = r - R;
    if (mine && done >= r0 && done < rows) out[(size_t)done * columns + c] = sums[S - 1];
#pragma unroll
    for (int i = S - 1; i > 0; --i) sums[i] = sums[i - 1];
    sums[0] = 0;
  }
}
template <int R>
static void go(float* out, const float* image, const float* weights, int rows, int columns, cudaStream_t stream) {
  const int per = 4 * (32 - 2 * R);
  ker_convolution<R><<<dim3((columns + per - 1) / per, (rows + 15) / 16), 128, 0, stream>>>(out, image, weights, rows,
                                                                                            columns);
}

extern "C" void launch_convolution(float* out, const float* image, const float* weights, int rows, int columns,
                                   int radius, cudaStream_t stream) {
  switch (radius) {
    case 1: return go<1>(out, image, weights, rows, columns, stream);
    case 2: return go<2>(out, image, weights, rows, columns, stream);
    default: return go<3>(out, image, weights, rows, columns, stream);
  }
}
