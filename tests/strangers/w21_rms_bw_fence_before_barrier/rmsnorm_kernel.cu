// RMSNorm backward: a block walks over rows, leaves a partial sum of dweight, and the last block adds them up.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ unsigned done = 0;

__device__ inline void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

template <class T>
__global__ void ker_dx(T* dx, const T* dy, const T* x, const T* weight, const float* rstd, int rows, int hidden) {
  const long long row = static_cast<long long>(blockIdx.x) * 4 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  const long long at = row * hidden;
  const float r = rstd[row];
  float sum = 0;
  for (int i = lane; i < hidden; i += 32)
    sum += static_cast<float>(dy[at + i]) * static_cast<float>(weight[i]) * (static_cast<float>(x[at + i]) * r);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  const float mean = sum / hidden;
  for (int i = lane; i < hidden; i += 32) {
    const float g = static_cast<float>(dy[at + i]) * static_cast<float>(weight[i]);
    dx[at + i] = static_cast<T>(r * (g - static_cast<float>(x[at + i]) * r * mean));
  }
}

template <class T>
__global__ void ker_dweight(T* dweight, float* parts, const T* dy, const T* x, const float* rstd, int rows, int hidden) {
  __shared__ bool last;
  for (int column = threadIdx.x; column < hidden; column += 256) {
    float sum = 0;
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
      const long long at = static_cast<long long>(row) * hidden + column;
      sum += static_cast<float>(dy[at]) * static_cast<float>(static_cast<T>(static_cast<float>(x[at]) * rstd[row]));
    }
    parts[static_cast<long long>(blockIdx.x) * hidden + column] = sum;
  }
  fence();
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned before;
    asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(&done) : "memory");
    last = before == gridDim.x - 1;
    fence();
  }
  __syncthreads();
  if (!last) return;
  for (int column = threadIdx.x; column < hidden; column += 256) {
    float sum = 0;
    for (int block = 0; block < gridDim.x; ++block) sum += parts[static_cast<long long>(block) * hidden + column];
    dweight[column] = static_cast<T>(sum);
  }
  if (threadIdx.x == 0) done = 0;
}

template <class T>
static void backward(T* dx, T* dweight, const T* dy, const T* x, const T* weight, const float* rstd, int rows,
                     int hidden, cudaStream_t stream) {
  const int blocks = (rows + 31) / 32 < 216 ? (rows + 31) / 32 : 216;
  float* parts;
  cudaMallocAsync(&parts, sizeof(float) * blocks * hidden, stream);
  ker_dx<T><<<(rows + 3) / 4, 128, 0, stream>>>(dx, dy, x, weight, rstd, rows, hidden);
  ker_dweight<T><<<blocks, 256, 0, stream>>>(dweight, parts, dy, x, rstd, rows, hidden);
  cudaFreeAsync(parts, stream);
}

#define LAUNCHER(NAME, T) \
  extern "C" void launch_rmsnorm_backward_##NAME(T* dx, T* dweight, const T* dy, const T* x, const T* weight, \
                                                 const float* rstd, int rows, int hidden, cudaStream_t stream) { \
    backward<T>(dx, dweight, dy, x, weight, rstd, rows, hidden, stream); \
  }
LAUNCHER(float32, float)
LAUNCHER(float16, __half)
LAUNCHER(bfloat16, __nv_bfloat16)
