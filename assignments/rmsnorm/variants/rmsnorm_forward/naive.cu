// A thread per row reads it twice, one element after the other.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <class T>
__global__ void ker(T* y, float* rstd, const T* x, const T* weight, float epsilon, int rows, int hidden) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const size_t start = static_cast<size_t>(row) * hidden;
  float sum = 0.0f;
  for (int i = 0; i < hidden; ++i) {
    const float value = static_cast<float>(x[start + i]);
    sum += value * value;
  }
  const float inverse = 1.0f / sqrtf(sum / hidden + epsilon);
  rstd[row] = inverse;
  for (int i = 0; i < hidden; ++i) {
    const T normal = static_cast<T>(static_cast<float>(x[start + i]) * inverse);
    y[start + i] = static_cast<T>(static_cast<float>(normal) * static_cast<float>(weight[i]));
  }
}

#define LAUNCHER(T, NAME)                                                                                      \
  extern "C" void launch_rmsnorm_forward_##NAME(T* y, float* rstd, const T* x, const T* weight, float epsilon, \
                                                int rows, int hidden, cudaStream_t stream) {                   \
    ker<<<(rows + 127) / 128, 128, 0, stream>>>(y, rstd, x, weight, epsilon, rows, hidden);                    \
  }
LAUNCHER(float, float32)
LAUNCHER(__half, float16)
LAUNCHER(__nv_bfloat16, bfloat16)
