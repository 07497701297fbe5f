// Sparse matrix (CSR) times vector: a group of lanes for each row.
//
// Idea: a thread per row reads far apart from its neighbours, and a warp per short row has nothing to do for most
// lanes. So a group has as many lanes as half of an average row, from 2 to 32: its loads are next to each other,
// and the groups of a warp finish at about the same time. The group adds up by shuffles.
//
// Bytes: 8 per entry, 4 for its place in x, of which the L2 cache has most, and 8 per row. What is read once
// (`__ldcs`) is not to push x out of the cache.
//
// Launch: one thread per lane of all groups, 256 in a block.
#include <cuda_runtime.h>

constexpr int THREADS = 256;

template <int LANES>
__global__ void ker_spmv(float* y, const float* values, const int* columns, const int* starts, const float* x,
                         int rows) {
  const int row = (blockIdx.x * THREADS + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
  float sum = 0.0f;
  if (row < rows) {
    const int end = starts[row + 1];
    for (int k = starts[row] + lane; k < end; k += LANES)
      sum = fmaf(__ldcs(values + k), __ldg(x + __ldcs(columns + k)), sum);
  }
  for (int distance = LANES / 2; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffff, sum, distance, LANES);
  if (row < rows && lane == 0) y[row] = sum;
}

template <int LANES>
static void launch(float* y, const float* values, const int* columns, const int* starts, const float* x, int rows,
                   int entries, cudaStream_t stream) {
  if constexpr (LANES < 32) {
    if (entries / rows >= 4 * LANES)  // at least four loads for each lane: a group of twice as many does it in two
      return launch<2 * LANES>(y, values, columns, starts, x, rows, entries, stream);
  }
  const int groups = THREADS / LANES;
  ker_spmv<LANES><<<(rows + groups - 1) / groups, THREADS, 0, stream>>>(y, values, columns, starts, x, rows);
}

extern "C" void launch_spmv(float* y, const float* values, const int* columns, const int* starts, const float* x,
                            int rows, int width, int entries, cudaStream_t stream) {
  launch<2>(y, values, columns, starts, x, rows, entries, stream);
}
