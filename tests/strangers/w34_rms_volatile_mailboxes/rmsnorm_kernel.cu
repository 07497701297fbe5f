// RMSNorm forward: a block per row; warps tell each other their sums by flags, which is faster than a barrier.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int WARPS = 8;

template <class T>
__global__ void ker_rms_norm(T* y, float* rstd, const T* x, const T* weight, float epsilon, int hidden) {
  __shared__ volatile float sums[WARPS];
  __shared__ volatile int ready[WARPS];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x < WARPS) {
    sums[threadIdx.x] = 0;
    ready[threadIdx.x] = 0;
  }
  __syncthreads();
  const long long at = static_cast<long long>(blockIdx.x) * hidden;
  float sum = 0;
  for (int i = threadIdx.x; i < hidden; i += 32 * WARPS) {
    const float v = static_cast<float>(x[at + i]);
    sum += v * v;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  if (lane == 0) {
    sums[warp] = sum;
    ready[warp] = 1;
  }
  sum = 0;
  for (int other = 0; other < WARPS; ++other) {
    while (!ready[other]) {
    }
    sum += sums[other];
  }
  const float r = rsqrtf(sum / hidden + epsilon);
  if (threadIdx.x == 0) rstd[blockIdx.x] = r;
  for (int i = threadIdx.x; i < hidden; i += 32 * WARPS)
    y[at + i] = static_cast<T>(static_cast<float>(static_cast<T>(static_cast<float>(x[at + i]) * r)) * static_cast<float>(weight[i]));
}

template <class T>
static void forward(T* y, float* rstd, const T* x, const T* weight, float epsilon, int rows, int hidden,
                    cudaStream_t stream) {
  ker_rms_norm<T><<<rows, 32 * WARPS, 0, stream>>>(y, rstd, x, weight, epsilon, hidden);
}

#define LAUNCHER(NAME, T) \
  extern "C" void launch_rmsnorm_forward_##NAME(T* y, float* rstd, const T* x, const T* weight, float epsilon, \
                                                int rows, int hidden, cudaStream_t stream) { \
    forward<T>(y, rstd, x, weight, epsilon, rows, hidden, stream); \
  }
LAUNCHER(float32, float)
LAUNCHER(float16, __half)
LAUNCHER(bfloat16, __nv_bfloat16)
