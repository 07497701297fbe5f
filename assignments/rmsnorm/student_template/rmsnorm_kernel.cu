// RMSNorm over the last axis, forward (problem 1) and backward (problem 2). HANDOUT.md says what each must do.
// Write the bodies marked YOUR CODE HERE. You may change everything but the names and parameters of the launchers.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

// One block per row.
template <class T>
__global__ void ker_rms_norm(T* y, float* rstd, const T* x, const T* weight, float epsilon, int hidden) {
  // YOUR CODE HERE (rmsnorm_forward)
  // 1. The sum of squares of the row, in float, over all threads of the block.
  // 2. rstd, written by one thread.
  // 3. T(x * rstd), times the weight.
}

template <class T>
static void forward(T* y, float* rstd, const T* x, const T* weight, float epsilon, int rows, int hidden,
                    cudaStream_t stream) {
  // YOUR CODE HERE (rmsnorm_forward): choose threads per block and launch on `stream`.
}

// Gradient of x. One block per row.
template <class T>
__global__ void ker_rms_bw_dx(T* dx, const T* dy, const T* x, const T* weight, const float* rstd, int hidden) {
  // YOUR CODE HERE (rmsnorm_backward)
}

// Gradient of the weight: sums over rows. Neighbouring threads should read neighbouring columns.
template <class T>
__global__ void ker_rms_bw_dweight(T* dweight, const T* dy, const T* x, const float* rstd, int rows, int hidden) {
  // YOUR CODE HERE (rmsnorm_backward)
}

template <class T>
static void backward(T* dx, T* dweight, const T* dy, const T* x, const T* weight, const float* rstd, int rows,
                     int hidden, cudaStream_t stream) {
  // YOUR CODE HERE (rmsnorm_backward)
}

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
