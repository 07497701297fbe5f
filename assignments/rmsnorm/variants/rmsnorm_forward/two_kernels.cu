// The roots first, by a thread per row; then every element by a thread of its own.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <class T>
__global__ void ker_root(float* rstd, const T* x, float epsilon, int rows, int hidden) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int i = 0; i < hidden; ++i) {
    const float element = static_cast<float>(x[static_cast<size_t>(row) * hidden + i]);
    sum += element * element;
  }
  rstd[row] = rsqrtf(sum / hidden + epsilon);
}

template <class T>
__global__ void ker_scale(T* y, const float* rstd, const T* x, const T* weight, int rows, int hidden) {
  const size_t at = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= static_cast<size_t>(rows) * hidden) return;
  const T normal = static_cast<T>(static_cast<float>(x[at]) * rstd[at / hidden]);
  y[at] = static_cast<T>(static_cast<float>(normal) * static_cast<float>(weight[at % hidden]));
}

template <class T>
static void forward(T* y, float* rstd, const T* x, const T* weight, float epsilon, int rows, int hidden,
                    cudaStream_t stream) {
  const size_t count = static_cast<size_t>(rows) * hidden;
  ker_root<<<(rows + 127) / 128, 128, 0, stream>>>(rstd, x, epsilon, rows, hidden);
  ker_scale<<<static_cast<unsigned>((count + 255) / 256), 256, 0, stream>>>(y, rstd, x, weight, rows, hidden);
}

#define LAUNCHER(T, NAME)                                                                                        \
  extern "C" void launch_rmsnorm_forward_##NAME(T* y, float* rstd, const T* x, const T* weight, float epsilon,   \
                                                int rows, int hidden, cudaStream_t stream) {                     \
    forward(y, rstd, x, weight, epsilon, rows, hidden, stream);                                                  \
  }
LAUNCHER(float, float32)
LAUNCHER(__half, float16)
LAUNCHER(__nv_bfloat16, bfloat16)
