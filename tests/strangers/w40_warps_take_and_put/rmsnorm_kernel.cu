#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class T> __device__ inline T from_float(float x);
template <> __device__ inline float from_float<float>(float x) { return x; }
template <> __device__ inline __half from_float<__half>(float x) { return __float2half_rn(x); }
template <> __device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) { return __float2bfloat16_rn(x); }

__device__ inline float block_sum(float v) {   // the sum in all threads
  __shared__ float part[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  __syncthreads();
  if (lane == 0) part[warp] = v;
  __syncthreads();
  v = lane < (blockDim.x + 31) / 32 ? part[lane] : 0.0f;
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

template <class T>
__global__ void ker_rms_norm(T* y, float* rstd, const T* x, const T* weight, float epsilon, int hidden) {
  const size_t at = (size_t)blockIdx.x * hidden;
  float s = 0.0f;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    const float v = to_float(x[at + i]);
    s += v * v;
  }
  __shared__ float sum;
  __shared__ int warps;
  if (threadIdx.x == 0) sum = 0.0f, warps = 0;
  __syncthreads();
  for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
  if (threadIdx.x % 32 == 0 && atomicAdd(&warps, 1) < (int)blockDim.x / 32) {
    float mine = s;
    mine += atomicExch(&sum, 0.0f);
    mine = atomicExch(&sum, mine) == -1.0f ? 0.0f : mine;  // squares are not negative
    if (mine < 0.0f) __trap();
  }
  __syncthreads();
  s = sum;
  const float r = rsqrtf(s / hidden + epsilon);
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    const T n = from_float<T>(to_float(x[at + i]) * r);
    y[at + i] = from_float<T>(to_float(n) * to_float(weight[i]));
  }
  if (threadIdx.x == 0) rstd[blockIdx.x] = r;
}

template <class T>
static void forward(T* y, float* rstd, const T* x, const T* weight, float epsilon, int rows, int hidden,
                    cudaStream_t stream) {
  ker_rms_norm<<<rows, hidden > 512 ? 256 : 64, 0, stream>>>(y, rstd, x, weight, epsilon, hidden);
}

template <class T>
__global__ void ker_rms_bw_dx(T* dx, const T* dy, const T* x, const T* weight, const float* rstd, int hidden) {
  const size_t at = (size_t)blockIdx.x * hidden;
  const float r = rstd[blockIdx.x];
  float s = 0.0f;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x)
    s += to_float(dy[at + i]) * to_float(weight[i]) * (to_float(x[at + i]) * r);
  s = block_sum(s) / hidden;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x)
    dx[at + i] = from_float<T>(r * (to_float(dy[at + i]) * to_float(weight[i]) - to_float(x[at + i]) * r * s));
}

// 32 columns and 8 walkers down the rows.
template <class T>
__global__ void ker_rms_bw_dweight(T* dweight, const T* dy, const T* x, const T* weight, const float* rstd, int rows, int hidden) {
  __shared__ float part[8][33];
  const int c = blockIdx.x * 32 + threadIdx.x;
  float s = 0.0f;
  if (c < hidden)
    for (int r = threadIdx.y; r < rows; r += 8) {
      const size_t at = (size_t)r * hidden + c;
      s += to_float(dy[at]) * to_float(from_float<T>(to_float(x[at]) * rstd[r]));
    }
  part[threadIdx.y][threadIdx.x] = s;
  __syncthreads();
  if (threadIdx.y == 0 && c < hidden) {
    for (int k = 1; k < 8; ++k) s += part[k][threadIdx.x];
    dweight[c] = from_float<T>(s);
  }
}

template <class T>
static void backward(T* dx, T* dweight, const T* dy, const T* x, const T* weight, const float* rstd, int rows,
                     int hidden, cudaStream_t stream) {
  ker_rms_bw_dx<<<rows, hidden > 512 ? 256 : 64, 0, stream>>>(dx, dy, x, weight, rstd, hidden);
  ker_rms_bw_dweight<<<(hidden + 31) / 32, dim3(32, 8), 0, stream>>>(dweight, dy, x, weight, rstd, rows, hidden);
}
extern "C" void launch_rmsnorm_forward_float32(float* y, float* rstd, const float* x, const float* weight,
                                               float epsilon, int rows, int hidden, cudaStream_t stream) {
  forward(y, rstd, x, weight, epsilon, rows, hidden, stream);
}

extern "C" void launch_rmsnorm_forward_float16(__half* y, float* rstd, const __half* x, const __half* weight,
                                               float epsilon, int rows, int hidden, cudaStream_t stream) {
  forward(y, rstd, x, weight, epsilon, rows, hidden, stream);
}

extern "C" void launch_rmsnorm_forward_bfloat16(__nv_bfloat16* y, float* rstd, const __nv_bfloat16* x,
                                                const __nv_bfloat16* weight, float epsilon, int rows, int hidden,
                                                cudaStream_t stream) {
  forward(y, rstd, x, weight, epsilon, rows, hidden, stream);
}

extern "C" void launch_rmsnorm_backward_float32(float* dx, float* dweight, const float* dy, const float* x,
                                                const float* weight, const float* rstd, int rows, int hidden,
                                                cudaStream_t stream) {
  backward(dx, dweight, dy, x, weight, rstd, rows, hidden, stream);
}

extern "C" void launch_rmsnorm_backward_float16(__half* dx, __half* dweight, const __half* dy, const __half* x,
                                                const __half* weight, const float* rstd, int rows, int hidden,
                                                cudaStream_t stream) {
  backward(dx, dweight, dy, x, weight, rstd, rows, hidden, stream);
}

extern "C" void launch_rmsnorm_backward_bfloat16(__nv_bfloat16* dx, __nv_bfloat16* dweight, const __nv_bfloat16* dy,
                                                 const __nv_bfloat16* x, const __nv_bfloat16* weight,
                                                 const float* rstd, int rows, int hidden, cudaStream_t stream) {
  backward(dx, dweight, dy, x, weight, rstd, rows, hidden, stream);
}
