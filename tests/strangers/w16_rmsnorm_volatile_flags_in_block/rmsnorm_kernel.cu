// Warps of a block exchange their sums by flags.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline void put(float& to, float x) { to = x; }
__device__ inline void put(__half& to, float x) { to = __float2half_rn(x); }
__device__ inline void put(__nv_bfloat16& to, float x) { to = __float2bfloat16_rn(x); }

template <class T>
__global__ void ker_rms_norm(T* y, float* rstd, const T* x, const T* weight, float epsilon, int hidden) {
  __shared__ volatile float slot[8];
  __shared__ volatile int flag[8];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const T* row = x + (size_t)blockIdx.x * hidden;
  T* to = y + (size_t)blockIdx.x * hidden;
  if (threadIdx.x < 8) slot[threadIdx.x] = 0, flag[threadIdx.x] = 0;
  __syncthreads();
  float sum = 0;
  for (int c = threadIdx.x; c < hidden; c += blockDim.x) {
    const float v = to_float(row[c]);
    sum += v * v;
  }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (lane == 0) {
    slot[warp] = sum;
    flag[warp] = 1;
  }
  sum = 0;
  if (lane < 8) {
    while (flag[lane] == 0) {}
    sum = slot[lane];
  }
  __syncwarp();
  for (int d = 4; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  sum = __shfl_sync(0xffffffffu, sum, 0);
  const float r = rsqrtf(sum / hidden + epsilon);
  if (threadIdx.x == 0) rstd[blockIdx.x] = r;
  for (int c = threadIdx.x; c < hidden; c += blockDim.x) {
    T normal;
    put(normal, to_float(row[c]) * r);
    put(to[c], to_float(normal) * to_float(weight[c]));
  }
}

#define FORWARD(NAME, T)                                                                                       \
  extern "C" void launch_rmsnorm_forward_##NAME(T* y, float* rstd, const T* x, const T* weight, float epsilon, \
                                                int rows, int hidden, cudaStream_t stream) {                   \
    ker_rms_norm<T><<<rows, 256, 0, stream>>>(y, rstd, x, weight, epsilon, hidden);                            \
  }                                                                                                            \
  extern "C" void launch_rmsnorm_backward_##NAME(T* dx, T* dweight, const T* dy, const T* x, const T* weight,  \
                                                 const float* rstd, int rows, int hidden, cudaStream_t stream) {}
FORWARD(float32, float)
FORWARD(float16, __half)
FORWARD(bfloat16, __nv_bfloat16)
