// A linear scan (problem 1) and the RG-LRU, forward (problem 2) and backward (problem 3). HANDOUT.md says what each
// must do. Write the bodies marked YOUR CODE HERE. You may change everything but the names and parameters of the
// launchers.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T>
__global__ void ker_linear_scan(T* h, const T* a, const T* b, const float* h0, int length, int width) {
  // YOUR CODE HERE (linear_scan)
  // First a thread per channel that walks along time. Then share time among threads, and combine their steps.
}

template <class T>
static void linear_scan(T* h, const T* a, const T* b, const float* h0, int batch, int length, int width,
                        cudaStream_t stream) {
  // YOUR CODE HERE (linear_scan): launch on `stream`.
}

template <class T>
__global__ void ker_rglru(T* h, const T* x, const T* gx, const T* ga, const float* c, const float* h0, int length,
                          int width) {
  // YOUR CODE HERE (rglru_forward): a and b of the scan come from x, gx, ga and c.
}

template <class T>
static void forward(T* h, const T* x, const T* gx, const T* ga, const float* c, const float* h0, int batch, int length,
                    int width, cudaStream_t stream) {
  // YOUR CODE HERE (rglru_forward)
}

template <class T>
__global__ void ker_rglru_bw(T* dx, T* dgx, T* dga, float* dc, float* dh0, const T* dh, const T* x, const T* gx,
                             const T* ga, const float* c, const T* h, const float* h0, int length, int width) {
  // YOUR CODE HERE (rglru_backward): from the last step to the first.
}

template <class T>
static void backward(T* dx, T* dgx, T* dga, float* dc, float* dh0, const T* dh, const T* x, const T* gx, const T* ga,
                     const float* c, const T* h, const float* h0, int batch, int length, int width,
                     cudaStream_t stream) {
  // YOUR CODE HERE (rglru_backward): dc is a sum over all sequences, too.
}

// h, a, b: [batch, length, width]; h0: [batch, width] or null for zeros.
extern "C" void launch_linear_scan_float32(float* h, const float* a, const float* b, const float* h0, int batch,
                                           int length, int width, cudaStream_t stream) {
  linear_scan(h, a, b, h0, batch, length, width, stream);
}

extern "C" void launch_linear_scan_float16(__half* h, const __half* a, const __half* b, const float* h0, int batch,
                                           int length, int width, cudaStream_t stream) {
  linear_scan(h, a, b, h0, batch, length, width, stream);
}

extern "C" void launch_linear_scan_bfloat16(__nv_bfloat16* h, const __nv_bfloat16* a, const __nv_bfloat16* b,
                                            const float* h0, int batch, int length, int width, cudaStream_t stream) {
  linear_scan(h, a, b, h0, batch, length, width, stream);
}

// h, x, gx, ga: [batch, length, width]; c: [width]; h0: [batch, width] or null for zeros.
extern "C" void launch_rglru_forward_float32(float* h, const float* x, const float* gx, const float* ga, const float* c,
                                             const float* h0, int batch, int length, int width, cudaStream_t stream) {
  forward(h, x, gx, ga, c, h0, batch, length, width, stream);
}

extern "C" void launch_rglru_forward_float16(__half* h, const __half* x, const __half* gx, const __half* ga,
                                             const float* c, const float* h0, int batch, int length, int width,
                                             cudaStream_t stream) {
  forward(h, x, gx, ga, c, h0, batch, length, width, stream);
}

extern "C" void launch_rglru_forward_bfloat16(__nv_bfloat16* h, const __nv_bfloat16* x, const __nv_bfloat16* gx,
                                              const __nv_bfloat16* ga, const float* c, const float* h0, int batch,
                                              int length, int width, cudaStream_t stream) {
  forward(h, x, gx, ga, c, h0, batch, length, width, stream);
}

// h is what forward wrote. dc [width] and dh0 [batch, width] are written, not added to.
extern "C" void launch_rglru_backward_float32(float* dx, float* dgx, float* dga, float* dc, float* dh0, const float* dh,
                                              const float* x, const float* gx, const float* ga, const float* c,
                                              const float* h, const float* h0, int batch, int length, int width,
                                              cudaStream_t stream) {
  backward(dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, h0, batch, length, width, stream);
}

extern "C" void launch_rglru_backward_float16(__half* dx, __half* dgx, __half* dga, float* dc, float* dh0,
                                              const __half* dh, const __half* x, const __half* gx, const __half* ga,
                                              const float* c, const __half* h, const float* h0, int batch, int length,
                                              int width, cudaStream_t stream) {
  backward(dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, h0, batch, length, width, stream);
}

extern "C" void launch_rglru_backward_bfloat16(__nv_bfloat16* dx, __nv_bfloat16* dgx, __nv_bfloat16* dga, float* dc,
                                               float* dh0, const __nv_bfloat16* dh, const __nv_bfloat16* x,
                                               const __nv_bfloat16* gx, const __nv_bfloat16* ga, const float* c,
                                               const __nv_bfloat16* h, const float* h0, int batch, int length,
                                               int width, cudaStream_t stream) {
  backward(dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, h0, batch, length, width, stream);
}
