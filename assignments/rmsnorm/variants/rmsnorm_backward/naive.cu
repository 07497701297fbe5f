// A thread per row for dx and one per column for dweight, each of which walks along it.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <class T>
__global__ void ker_dx(T* dx, const T* dy, const T* x, const T* weight, const float* rstd, int rows, int hidden) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const size_t start = static_cast<size_t>(row) * hidden;
  float sum = 0.0f;
  for (int i = 0; i < hidden; ++i)
    sum += static_cast<float>(dy[start + i]) * static_cast<float>(weight[i]) * static_cast<float>(x[start + i]) *
           rstd[row];
  for (int i = 0; i < hidden; ++i) {
    const float normal = static_cast<float>(x[start + i]) * rstd[row];
    const float given = static_cast<float>(dy[start + i]) * static_cast<float>(weight[i]);
    dx[start + i] = static_cast<T>(rstd[row] * (given - normal * sum / hidden));
  }
}

template <class T>
__global__ void ker_dweight(T* dweight, const T* dy, const T* x, const float* rstd, int rows, int hidden) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= hidden) return;
  float sum = 0.0f;
  for (int row = 0; row < rows; ++row) {
    const size_t at = static_cast<size_t>(row) * hidden + column;
    sum += static_cast<float>(dy[at]) * static_cast<float>(static_cast<T>(static_cast<float>(x[at]) * rstd[row]));
  }
  dweight[column] = static_cast<T>(sum);
}

#define LAUNCHER(T, NAME)                                                                                        \
  extern "C" void launch_rmsnorm_backward_##NAME(T* dx, T* dweight, const T* dy, const T* x, const T* weight,    \
                                                 const float* rstd, int rows, int hidden, cudaStream_t stream) { \
    ker_dx<<<(rows + 127) / 128, 128, 0, stream>>>(dx, dy, x, weight, rstd, rows, hidden);                       \
    ker_dweight<<<(hidden + 127) / 128, 128, 0, stream>>>(dweight, dy, x, rstd, rows, hidden);                   \
  }
LAUNCHER(float, float32)
LAUNCHER(__half, float16)
LAUNCHER(__nv_bfloat16, bfloat16)
