#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;

template <int L>
__global__ void ker_spmv(float* y, const float* __restrict__ values, const int* __restrict__ columns,
                         const int* __restrict__ starts, const float* __restrict__ x, int rows) {
  auto tile = cg::tiled_partition<L>(cg::this_thread_block());
  const long long row = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / L;
  if (row >= rows) return;  // a whole tile leaves
  float sum = 0;
  for (int k = starts[row] + (int)tile.thread_rank(), end = starts[row + 1]; k < end; k += L)
    sum = fmaf(values[k], x[columns[k]], sum);
  sum = cg::reduce(tile, sum, cg::plus<float>());
  if (tile.thread_rank() == 0) y[row] = sum;
}
template <int L>
static void go(float* y, const float* values, const int* columns, const int* starts, const float* x, int rows,
               int average, cudaStream_t stream) {
  if constexpr (L < 32) {
    if (average > L) return go<2 * L>(y, values, columns, starts, x, rows, average, stream);
  }
  ker_spmv<L><<<(unsigned)(((long long)rows * L + 127) / 128), 128, 0, stream>>>(y, values, columns, starts, x, rows);
}

extern "C" void launch_spmv(float* y, const float* values, const int* columns, const int* starts, const float* x,
                            int rows, int width, int entries, cudaStream_t stream) {
  go<1>(y, values, columns, starts, x, rows, entries / rows, stream);
}
