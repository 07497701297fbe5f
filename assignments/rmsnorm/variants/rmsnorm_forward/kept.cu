// The row waits in shared memory, as floats, between the sum and the result.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int THREADS = 256, MOST_HIDDEN = 16384;

template <class T>
__global__ void ker(T* y, float* rstd, const T* x, const T* weight, float epsilon, int hidden) {
  extern __shared__ float row[];
  __shared__ float sums[THREADS / 32];
  const size_t start = static_cast<size_t>(blockIdx.x) * hidden;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < hidden; i += THREADS) {
    row[i] = static_cast<float>(x[start + i]);
    sum += row[i] * row[i];
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  float total = 0.0f;
  for (int warp = 0; warp < THREADS / 32; ++warp) total += sums[warp];
  const float inverse = rsqrtf(total / hidden + epsilon);
  if (threadIdx.x == 0) rstd[blockIdx.x] = inverse;
  for (int i = threadIdx.x; i < hidden; i += THREADS) {
    const float normal = static_cast<float>(static_cast<T>(row[i] * inverse));
    y[start + i] = static_cast<T>(normal * static_cast<float>(weight[i]));
  }
}

template <class T>
static void forward(T* y, float* rstd, const T* x, const T* weight, float epsilon, int rows, int hidden,
                    cudaStream_t stream) {
  cudaFuncSetAttribute(ker<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, MOST_HIDDEN * sizeof(float));
  ker<<<rows, THREADS, hidden * sizeof(float), stream>>>(y, rstd, x, weight, epsilon, hidden);
}

#define LAUNCHER(T, NAME)                                                                                        \
  extern "C" void launch_rmsnorm_forward_##NAME(T* y, float* rstd, const T* x, const T* weight, float epsilon,   \
                                                int rows, int hidden, cudaStream_t stream) {                     \
    forward(y, rstd, x, weight, epsilon, rows, hidden, stream);                                                  \
  }
LAUNCHER(float, float32)
LAUNCHER(__half, float16)
LAUNCHER(__nv_bfloat16, bfloat16)
