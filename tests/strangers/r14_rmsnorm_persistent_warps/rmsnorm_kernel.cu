#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ inline float get(float x) { return x; }
__device__ inline float get(__half x) { return __half2float(x); }
__device__ inline float get(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class T> __device__ inline T as(float x);
template <> __device__ inline float as<float>(float x) { return x; }
template <> __device__ inline __half as<__half>(float x) { return __float2half_rn(x); }
template <> __device__ inline __nv_bfloat16 as<__nv_bfloat16>(float x) { return __float2bfloat16_rn(x); }

template <class T>
__global__ void ker_forward(T* y, float* rstd, const T* x, const T* weight, float epsilon, int rows, int hidden) {
  const int lane = threadIdx.x % 32;
  for (long long r = blockIdx.x * 4 + threadIdx.x / 32; r < rows; r += 4ll * gridDim.x) {
    const T* from = x + r * hidden;
    float s = 0;
    for (int c = lane; c < hidden; c += 32) s = fmaf(get(from[c]), get(from[c]), s);
    for (int d = 16; d > 0; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    const float k = 1.0f / sqrtf(s / hidden + epsilon);
    if (lane == 0) rstd[r] = k;
    for (int c = lane; c < hidden; c += 32) y[r * hidden + c] = as<T>(get(as<T>(get(from[c]) * k)) * get(weight[c]));
  }
}
template <class T>
__global__ void ker_dx(T* dx, const T* dy, const T* x, const T* weight, const float* rstd, int rows, int hidden) {
  const int lane = threadIdx.x % 32;
  for (long long r = blockIdx.x * 4 + threadIdx.x / 32; r < rows; r += 4ll * gridDim.x) {
    const float k = rstd[r];
    float s = 0;
    for (int c = lane; c < hidden; c += 32) {
      const long long i = r * hidden + c;
      s += get(dy[i]) * get(weight[c]) * (get(x[i]) * k);
    }
    for (int d = 16; d > 0; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    s /= hidden;
    for (int c = lane; c < hidden; c += 32) {
      const long long i = r * hidden + c;
      dx[i] = as<T>(k * (get(dy[i]) * get(weight[c]) - get(x[i]) * k * s));
    }
  }
}
template <class T>
__global__ void ker_dweight(T* dweight, float* parts, unsigned* done, const T* dy, const T* x, const float* rstd,
                            int rows, int hidden) {
  __shared__ bool last;
  const int c = blockIdx.x * 128 + threadIdx.x, groups = gridDim.y;
  if (c < hidden) {
    float s = 0;
    for (long long r = blockIdx.y; r < rows; r += groups)
      s += get(dy[r * hidden + c]) * get(as<T>(get(x[r * hidden + c]) * rstd[r]));
    parts[(size_t)blockIdx.y * hidden + c] = s;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(done + blockIdx.x, 1u) == groups - 1u;
    __threadfence();
  }
  __syncthreads();
  if (last && c < hidden) {
    float s = 0;
    for (int g = 0; g < groups; ++g) s += parts[(size_t)g * hidden + c];
    dweight[c] = as<T>(s);
  }
}
template <class T>
static void backward(T* dx, T* dweight, const T* dy, const T* x, const T* weight, const float* rstd, int rows,
                     int hidden, cudaStream_t stream) {
  const int blocks = rows < 4 * 864 ? (rows + 3) / 4 : 864, strips = (hidden + 127) / 128, groups = rows < 64 ? rows : 64;
  float* parts;
  unsigned* done;
  cudaMallocAsync(&parts, size_t(groups) * hidden * 4, stream);
  cudaMallocAsync(&done, strips * 4, stream);
  cudaMemsetAsync(done, 0, strips * 4, stream);
  ker_dx<T><<<blocks, 128, 0, stream>>>(dx, dy, x, weight, rstd, rows, hidden);
  ker_dweight<T><<<dim3(strips, groups), 128, 0, stream>>>(dweight, parts, done, dy, x, rstd, rows, hidden);
  cudaFreeAsync(done, stream);
  cudaFreeAsync(parts, stream);
}

#define BOTH(NAME, T)                                                                                             \
  extern "C" void launch_rmsnorm_forward_##NAME(T* y, float* rstd, const T* x, const T* weight, float epsilon,    \
                                                int rows, int hidden, cudaStream_t stream) {                      \
    ker_forward<T><<<rows < 4 * 864 ? (rows + 3) / 4 : 864, 128, 0, stream>>>(y, rstd, x, weight, epsilon, rows,  \
                                                                              hidden);                            \
  }                                                                                                               \
  extern "C" void launch_rmsnorm_backward_##NAME(T* dx, T* dweight, const T* dy, const T* x, const T* weight,     \
                                                 const float* rstd, int rows, int hidden, cudaStream_t stream) {  \
    backward<T>(dx, dweight, dy, x, weight, rstd, rows, hidden, stream);                                          \
  }
BOTH(float32, float)
BOTH(float16, __half)
BOTH(bfloat16, __nv_bfloat16)
