#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <typename scalar>
__global__ void rms_forward(scalar* y, float* rstd, const scalar* x, const scalar* w, float epsilon, int hidden) {
  __shared__ float partial[4];
  const int tid = threadIdx.x;
  const int lane = tid & 31, wid = tid >> 5;
  const size_t off = (size_t)blockIdx.x * hidden;
  float acc = 0.f;
  for (int c = tid; c < hidden; c += 128) {
    float v = (float)x[off + c];
    acc += v * v;
  }
  for (int d = 16; d; d >>= 1) acc += __shfl_xor_sync(0xffffffffu, acc, d);
  if (lane == 0) partial[wid] = acc;
  __syncthreads();
  acc = partial[0] + partial[1] + partial[2] + partial[3];
  const float r = rsqrtf(acc / hidden + epsilon);
  if (tid == 0) rstd[blockIdx.x] = r;
  for (int c = tid; c < hidden; c += 128) {
    scalar n = (scalar)((float)x[off + c] * r);
    y[off + c] = (scalar)((float)n * (float)w[c]);
  }
}

template <typename scalar>
void run_forward(scalar* y, float* rstd, const scalar* x, const scalar* w, float epsilon, int rows, int hidden,
                 cudaStream_t st) {
  rms_forward<scalar><<<rows, 128, 0, st>>>(y, rstd, x, w, epsilon, hidden);
}

template <typename scalar>
__global__ void rms_dx(scalar* dx, const scalar* dy, const scalar* x, const scalar* w, const float* rstd, int rows,
                       int hidden) {
  const int lane = threadIdx.x & 31;
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) >> 5;
  if (row >= rows) return;
  const size_t off = (size_t)row * hidden;
  const float r = rstd[row];
  float dot = 0.f;
  for (int c = lane; c < hidden; c += 32) dot += (float)dy[off + c] * (float)w[c] * (float)x[off + c] * r;
  for (int d = 16; d; d >>= 1) dot += __shfl_xor_sync(0xffffffffu, dot, d);
  for (int c = lane; c < hidden; c += 32) {
    float g = (float)dy[off + c] * (float)w[c];
    dx[off + c] = (scalar)(r * (g - (float)x[off + c] * r * dot / hidden));
  }
}

template <typename scalar>
__global__ void rms_dw(scalar* dw, const scalar* dy, const scalar* x, const float* rstd, int rows, int hidden) {
  __shared__ float tile[8][32];
  const int col = blockIdx.x * 32 + threadIdx.x;
  float acc = 0.f;
  if (col < hidden) {
    for (int row = threadIdx.y; row < rows; row += 8) {
      const size_t at = (size_t)row * hidden + col;
      acc += (float)dy[at] * (float)(scalar)((float)x[at] * rstd[row]);
    }
  }
  tile[threadIdx.y][threadIdx.x] = acc;
  __syncthreads();
  if (threadIdx.y == 0 && col < hidden) {
    float sum = 0.f;
    for (int k = 0; k < 8; k++) sum += tile[k][threadIdx.x];
    dw[col] = (scalar)sum;
  }
}

template <typename scalar>
void run_backward(scalar* dx, scalar* dw, const scalar* dy, const scalar* x, const scalar* w, const float* rstd,
                  int rows, int hidden, cudaStream_t st) {
  rms_dx<scalar><<<(rows + 3) / 4, 128, 0, st>>>(dx, dy, x, w, rstd, rows, hidden);
  rms_dw<scalar><<<(hidden + 31) / 32, dim3(32, 8), 0, st>>>(dw, dy, x, rstd, rows, hidden);
}

extern "C" {
void launch_rmsnorm_forward_float32(float* y, float* rstd, const float* x, const float* weight, float epsilon, int rows,
                                    int hidden, cudaStream_t stream) {
  run_forward(y, rstd, x, weight, epsilon, rows, hidden, stream);
}
void launch_rmsnorm_forward_float16(__half* y, float* rstd, const __half* x, const __half* weight, float epsilon,
                                    int rows, int hidden, cudaStream_t stream) {
  run_forward(y, rstd, x, weight, epsilon, rows, hidden, stream);
}
void launch_rmsnorm_forward_bfloat16(__nv_bfloat16* y, float* rstd, const __nv_bfloat16* x, const __nv_bfloat16* weight,
                                     float epsilon, int rows, int hidden, cudaStream_t stream) {
  run_forward(y, rstd, x, weight, epsilon, rows, hidden, stream);
}
void launch_rmsnorm_backward_float32(float* dx, float* dweight, const float* dy, const float* x, const float* weight,
                                     const float* rstd, int rows, int hidden, cudaStream_t stream) {
  run_backward(dx, dweight, dy, x, weight, rstd, rows, hidden, stream);
}
void launch_rmsnorm_backward_float16(__half* dx, __half* dweight, const __half* dy, const __half* x,
                                     const __half* weight, const float* rstd, int rows, int hidden,
                                     cudaStream_t stream) {
  run_backward(dx, dweight, dy, x, weight, rstd, rows, hidden, stream);
}
void launch_rmsnorm_backward_bfloat16(__nv_bfloat16* dx, __nv_bfloat16* dweight, const __nv_bfloat16* dy,
                                      const __nv_bfloat16* x, const __nv_bfloat16* weight, const float* rstd, int rows,
                                      int hidden, cudaStream_t stream) {
  run_backward(dx, dweight, dy, x, weight, rstd, rows, hidden, stream);
}
}
