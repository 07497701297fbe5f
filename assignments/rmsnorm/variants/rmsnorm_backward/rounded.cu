// Rounds g and n to the type of x first, as PyTorch's autograd does where a model is written operation by operation.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <class T>
__device__ inline float rounded(float x) {
  return static_cast<float>(static_cast<T>(x));
}

template <class T>
__global__ void ker_dx(T* dx, const T* dy, const T* x, const T* weight, const float* rstd, int hidden) {
  __shared__ float sums[4];
  const size_t start = static_cast<size_t>(blockIdx.x) * hidden;
  const float inverse = rstd[blockIdx.x];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    const float g = rounded<T>(static_cast<float>(dy[start + i]) * static_cast<float>(weight[i]));
    sum += g * rounded<T>(static_cast<float>(x[start + i]) * inverse);
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  const float mean = ((sums[0] + sums[1]) + (sums[2] + sums[3])) / hidden;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    const float g = rounded<T>(static_cast<float>(dy[start + i]) * static_cast<float>(weight[i]));
    const float n = rounded<T>(static_cast<float>(x[start + i]) * inverse);
    dx[start + i] = static_cast<T>((g - n * mean) * inverse);
  }
}

template <class T>
__global__ void ker_dweight(T* dweight, const T* dy, const T* x, const float* rstd, int rows, int hidden) {
  __shared__ float sums[8][32];
  const int column = blockIdx.x * 32 + threadIdx.x;
  float sum = 0.0f;
  for (int row = threadIdx.y; row < rows && column < hidden; row += 8) {
    const size_t at = static_cast<size_t>(row) * hidden + column;
    sum += static_cast<float>(dy[at]) * rounded<T>(static_cast<float>(x[at]) * rstd[row]);
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= hidden) return;
  for (int other = 1; other < 8; ++other) sum += sums[other][threadIdx.x];
  dweight[column] = static_cast<T>(sum);
}

template <class T>
static void backward(T* dx, T* dweight, const T* dy, const T* x, const T* weight, const float* rstd, int rows,
                     int hidden, cudaStream_t stream) {
  ker_dx<<<rows, 128, 0, stream>>>(dx, dy, x, weight, rstd, hidden);
  ker_dweight<<<(hidden + 31) / 32, dim3(32, 8), 0, stream>>>(dweight, dy, x, rstd, rows, hidden);
}

#define LAUNCHER(T, NAME)                                                                                        \
  extern "C" void launch_rmsnorm_backward_##NAME(T* dx, T* dweight, const T* dy, const T* x, const T* weight,    \
                                                 const float* rstd, int rows, int hidden, cudaStream_t stream) { \
    backward(dx, dweight, dy, x, weight, rstd, rows, hidden, stream);                                            \
  }
LAUNCHER(float, float32)
LAUNCHER(__half, float16)
LAUNCHER(__nv_bfloat16, bfloat16)
