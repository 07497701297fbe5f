// One block per row, element by element; the sum through a tree in shared memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <class T>
__global__ void ker(T* y, float* rstd, const T* x, const T* weight, float epsilon, int hidden) {
  __shared__ float sums[128];
  const size_t start = static_cast<size_t>(blockIdx.x) * hidden;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    const float element = static_cast<float>(x[start + i]);
    sum += element * element;
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  const float inverse = 1.0f / sqrtf(sums[0] / hidden + epsilon);
  if (threadIdx.x == 0) rstd[blockIdx.x] = inverse;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    const T normal = static_cast<T>(static_cast<float>(x[start + i]) * inverse);
    y[start + i] = static_cast<T>(static_cast<float>(normal) * static_cast<float>(weight[i]));
  }
}

template <class T>
static void forward(T* y, float* rstd, const T* x, const T* weight, float epsilon, int rows, int hidden,
                    cudaStream_t stream) {
  const int threads = hidden > 32 ? 128 : 32;
  ker<<<rows, threads, 0, stream>>>(y, rstd, x, weight, epsilon, hidden);
}

#define LAUNCHER(T, NAME)                                                                                        \
  extern "C" void launch_rmsnorm_forward_##NAME(T* y, float* rstd, const T* x, const T* weight, float epsilon,   \
                                                int rows, int hidden, cudaStream_t stream) {                     \
    forward(y, rstd, x, weight, epsilon, rows, hidden, stream);                                                  \
  }
LAUNCHER(float, float32)
LAUNCHER(__half, float16)
LAUNCHER(__nv_bfloat16, bfloat16)
