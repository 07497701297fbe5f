// dweight by atomic additions of floats, a share of the rows for each block; rounded by a kernel of its own.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <class T>
__global__ void ker_dx(T* dx, const T* dy, const T* x, const T* weight, const float* rstd, int rows, int hidden) {
  const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  const size_t start = static_cast<size_t>(row) * hidden;
  const float inverse = rstd[row];
  float sum = 0.0f;
  for (int i = lane; i < hidden; i += 32) {
    const float g = static_cast<float>(dy[start + i]) * static_cast<float>(weight[i]);
    sum += g * static_cast<float>(x[start + i]) * inverse;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  const float mean = sum / hidden;
  for (int i = lane; i < hidden; i += 32) {
    const float g = static_cast<float>(dy[start + i]) * static_cast<float>(weight[i]);
    dx[start + i] = static_cast<T>(inverse * (g - static_cast<float>(x[start + i]) * inverse * mean));
  }
}

template <class T>
__global__ void ker_add(float* sums, const T* dy, const T* x, const float* rstd, int rows, int hidden) {
  for (int column = threadIdx.x; column < hidden; column += blockDim.x) {
    float sum = 0.0f;
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
      const size_t at = static_cast<size_t>(row) * hidden + column;
      sum += static_cast<float>(dy[at]) * (static_cast<float>(x[at]) * rstd[row]);
    }
    atomicAdd(sums + column, sum);
  }
}

template <class T>
__global__ void ker_round(T* dweight, const float* sums, int hidden) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column < hidden) dweight[column] = static_cast<T>(sums[column]);
}

template <class T>
static void backward(T* dx, T* dweight, const T* dy, const T* x, const T* weight, const float* rstd, int rows,
                     int hidden, cudaStream_t stream) {
  float* sums = nullptr;
  cudaMallocAsync(&sums, hidden * sizeof(float), stream);
  cudaMemsetAsync(sums, 0, hidden * sizeof(float), stream);
  ker_dx<<<(rows + 3) / 4, 128, 0, stream>>>(dx, dy, x, weight, rstd, rows, hidden);
  ker_add<<<rows < 64 ? rows : 64, 128, 0, stream>>>(sums, dy, x, rstd, rows, hidden);
  ker_round<<<(hidden + 127) / 128, 128, 0, stream>>>(dweight, sums, hidden);
  cudaFreeAsync(sums, stream);
}

#define LAUNCHER(T, NAME)                                                                                        \
  extern "C" void launch_rmsnorm_backward_##NAME(T* dx, T* dweight, const T* dy, const T* x, const T* weight,    \
                                                 const float* rstd, int rows, int hidden, cudaStream_t stream) { \
    backward(dx, dweight, dy, x, weight, rstd, rows, hidden, stream);                                            \
  }
LAUNCHER(float, float32)
LAUNCHER(__half, float16)
LAUNCHER(__nv_bfloat16, bfloat16)
