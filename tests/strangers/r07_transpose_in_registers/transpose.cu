// Matrix transpose by shuffles alone: blocks of 16, 8, 4, 2 and 1 change places.
#include <cuda_runtime.h>

__global__ void ker_transpose(float* out, const float* matrix, int rows, int columns, long long across, long long tiles) {
  const long long tile = static_cast<long long>(blockIdx.x) * 4 + threadIdx.x / 32;
  if (tile >= tiles) return;
  const int lane = threadIdx.x % 32;
  const long long row0 = tile / across * 32, column0 = tile % across * 32;
  float x[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    x[i] = row0 + i < rows && column0 + lane < columns ? matrix[(row0 + i) * columns + column0 + lane] : 0.0f;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    const bool upper = lane & step;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      if (i & step) continue;
      // Lower lanes keep x[i] and give x[i + step], upper ones give x[i] and keep x[i + step].
      const float got = __shfl_xor_sync(0xffffffff, upper ? x[i] : x[i + step], step);
      if (upper) x[i] = got; else x[i + step] = got;
    }
  }
#pragma unroll
  for (int i = 0; i < 32; ++i)
    if (column0 + i < columns && row0 + lane < rows) out[(column0 + i) * rows + row0 + lane] = x[i];
}

extern "C" void launch_transpose(float* out, const float* matrix, int rows, int columns, cudaStream_t stream) {
  const long long across = (columns + 31) / 32, tiles = across * ((rows + 31) / 32);
  ker_transpose<<<static_cast<unsigned>((tiles + 3) / 4), 128, 0, stream>>>(out, matrix, rows, columns, across, tiles);
}
