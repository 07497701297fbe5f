// RMSNorm over the last axis, forward (problem 1) and backward (problem 2). HANDOUT.md says what each must do.
// Write the bodies marked YOUR CODE HERE. You may change everything but the names and parameters of the launchers.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }


template <class T> __device__ inline T as(float x);
template <> __device__ inline float as<float>(float x) { return x; }
template <> __device__ inline __half as<__half>(float x) { return __float2half_rn(x); }
template <> __device__ inline __nv_bfloat16 as<__nv_bfloat16>(float x) { return __float2bfloat16_rn(x); }

// Blocks stay and walk over the rows.
template <class T>
__global__ void ker_rms_norm(T* y, float* rstd, const T* x, const T* weight, float epsilon, int rows, int hidden) {
  __shared__ float of_warps[8];
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* mine = x + (size_t)row * hidden;
    float s = 0.0f;
    for (int c = threadIdx.x; c < hidden; c += blockDim.x) { float v = to_float(mine[c]); s += v * v; }
    for (int d = 16; d > 0; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = s;
    __syncthreads();
    float all = 0.0f;
    for (int k = 0; k < 8; ++k) all += of_warps[k];
    float r = 1.0f / sqrtf(all / hidden + epsilon);
    if (threadIdx.x == 0) rstd[row] = r;
    for (int c = threadIdx.x; c < hidden; c += blockDim.x)
      y[(size_t)row * hidden + c] = as<T>(to_float(as<T>(to_float(mine[c]) * r)) * to_float(weight[c]));
  }
}
template <class T>
static void forward(T* y, float* rstd, const T* x, const T* weight, float epsilon, int rows, int hidden, cudaStream_t stream) {
  ker_rms_norm<T><<<min(rows, 864), 256, 0, stream>>>(y, rstd, x, weight, epsilon, rows, hidden);
}
template <class T>
static void backward(T* dx, T* dweight, const T* dy, const T* x, const T* weight, const float* rstd, int rows, int hidden, cudaStream_t stream) {}
// ------------------------------------------------------------------------- what the grader calls: nothing to do below

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
