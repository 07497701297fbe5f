// A warp per row, eight rows per block; the normalised value is not rounded before it meets the weight.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <class T>
__global__ void ker(T* y, float* rstd, const T* x, const T* weight, float epsilon, int rows, int hidden) {
  const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  const T* in = x + static_cast<size_t>(row) * hidden;
  float sum = 0.0f;
  for (int i = lane; i < hidden; i += 32) sum = fmaf(static_cast<float>(in[i]), static_cast<float>(in[i]), sum);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  const float inverse = rsqrtf(sum / hidden + epsilon);
  if (lane == 0) rstd[row] = inverse;
  T* out = y + static_cast<size_t>(row) * hidden;
  for (int i = lane; i < hidden; i += 32)
    out[i] = static_cast<T>(static_cast<float>(in[i]) * inverse * static_cast<float>(weight[i]));
}

template <class T>
static void forward(T* y, float* rstd, const T* x, const T* weight, float epsilon, int rows, int hidden,
                    cudaStream_t stream) {
  ker<<<(rows + 7) / 8, 256, 0, stream>>>(y, rstd, x, weight, epsilon, rows, hidden);
}

#define LAUNCHER(T, NAME)                                                                                        \
  extern "C" void launch_rmsnorm_forward_##NAME(T* y, float* rstd, const T* x, const T* weight, float epsilon,   \
                                                int rows, int hidden, cudaStream_t stream) {                     \
    forward(y, rstd, x, weight, epsilon, rows, hidden, stream);                                                  \
  }
LAUNCHER(float, float32)
LAUNCHER(__half, float16)
LAUNCHER(__nv_bfloat16, bfloat16)
