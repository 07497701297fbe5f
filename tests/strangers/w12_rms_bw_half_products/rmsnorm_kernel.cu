// RMSNorm backward: a warp per row for dx, strips of rows with atomics for dweight.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ inline float term(float dy, float n) { return dy * n; }
__device__ inline float term(__half dy, __half n) { return __half2float(__hmul(dy, n)); }
__device__ inline float term(__nv_bfloat16 dy, __nv_bfloat16 n) { return __bfloat162float(dy) * __bfloat162float(n); }

template <class T>
__global__ void ker_dx(T* dx, const T* dy, const T* x, const T* weight, const float* rstd, int rows, int hidden) {
  const long long row = static_cast<long long>(blockIdx.x) * 4 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  const long long at = row * hidden;
  const float r = rstd[row];
  float sum = 0;
  for (int i = lane; i < hidden; i += 32)
    sum += static_cast<float>(dy[at + i]) * static_cast<float>(weight[i]) * (static_cast<float>(x[at + i]) * r);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  const float mean = sum / hidden;
  for (int i = lane; i < hidden; i += 32) {
    const float g = static_cast<float>(dy[at + i]) * static_cast<float>(weight[i]);
    dx[at + i] = static_cast<T>(r * (g - static_cast<float>(x[at + i]) * r * mean));
  }
}

template <class T>
__global__ void ker_dweight(float* sums, const T* dy, const T* x, const float* rstd, int rows, int hidden) {
  const int column = blockIdx.x * 32 + threadIdx.x;
  if (column >= hidden) return;
  float sum = 0;
  for (int row = blockIdx.y * 8 + threadIdx.y; row < rows; row += gridDim.y * 8) {
    const long long at = static_cast<long long>(row) * hidden + column;
    sum += term(dy[at], static_cast<T>(static_cast<float>(x[at]) * rstd[row]));
  }
  atomicAdd(sums + column, sum);
}

template <class T>
__global__ void ker_round(T* dweight, const float* sums, int hidden) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < hidden) dweight[i] = static_cast<T>(sums[i]);
}

template <class T>
static void backward(T* dx, T* dweight, const T* dy, const T* x, const T* weight, const float* rstd, int rows,
                     int hidden, cudaStream_t stream) {
  float* sums;
  cudaMallocAsync(&sums, hidden * sizeof(float), stream);
  cudaMemsetAsync(sums, 0, hidden * sizeof(float), stream);
  ker_dx<T><<<(rows + 3) / 4, 128, 0, stream>>>(dx, dy, x, weight, rstd, rows, hidden);
  const int strips = (rows + 63) / 64 < 64 ? (rows + 63) / 64 : 64;
  ker_dweight<T><<<dim3((hidden + 31) / 32, strips), dim3(32, 8), 0, stream>>>(sums, dy, x, rstd, rows, hidden);
  ker_round<T><<<(hidden + 255) / 256, 256, 0, stream>>>(dweight, sums, hidden);
  cudaFreeAsync(sums, stream);
}

#define LAUNCHER(NAME, T) \
  extern "C" void launch_rmsnorm_backward_##NAME(T* dx, T* dweight, const T* dy, const T* x, const T* weight, \
                                                 const float* rstd, int rows, int hidden, cudaStream_t stream) { \
    backward<T>(dx, dweight, dy, x, weight, rstd, rows, hidden, stream); \
  }
LAUNCHER(float32, float)
LAUNCHER(float16, __half)
LAUNCHER(bfloat16, __nv_bfloat16)
