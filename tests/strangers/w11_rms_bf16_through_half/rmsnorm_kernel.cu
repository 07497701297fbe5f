// RMSNorm forward: one warp per row. Both types of 16 bits go through half registers, float32 has its own loads.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ inline float load(const float* x) { return *x; }
__device__ inline float load(const __half* x) { return __half2float(*x); }
__device__ inline float load(const __nv_bfloat16* x) { return __half2float(__half(*x)); }  // 8 bits fit into 11

template <class T>
__global__ void ker_rms_norm(T* y, float* rstd, const T* x, const T* weight, float epsilon, int rows, int hidden) {
  const long long row = static_cast<long long>(blockIdx.x) * 4 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  x += row * hidden;
  y += row * hidden;
  float sum = 0;
  for (int i = lane; i < hidden; i += 32) {
    const float v = load(x + i);
    sum += v * v;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  const float r = rsqrtf(sum / hidden + epsilon);
  if (lane == 0) rstd[row] = r;
  for (int i = lane; i < hidden; i += 32)
    y[i] = static_cast<T>(static_cast<float>(static_cast<T>(load(x + i) * r)) * static_cast<float>(weight[i]));
}

template <class T>
static void forward(T* y, float* rstd, const T* x, const T* weight, float epsilon, int rows, int hidden,
                    cudaStream_t stream) {
  ker_rms_norm<T><<<(rows + 3) / 4, 128, 0, stream>>>(y, rstd, x, weight, epsilon, rows, hidden);
}

#define LAUNCHER(NAME, T) \
  extern "C" void launch_rmsnorm_forward_##NAME(T* y, float* rstd, const T* x, const T* weight, float epsilon, \
                                                int rows, int hidden, cudaStream_t stream) { \
    forward<T>(y, rstd, x, weight, epsilon, rows, hidden, stream); \
  }
LAUNCHER(float32, float)
LAUNCHER(float16, __half)
LAUNCHER(bfloat16, __nv_bfloat16)
