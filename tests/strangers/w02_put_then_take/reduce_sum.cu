// Two blocks. A half is put into a mailbox, then the other mailbox is emptied: who finds something there adds up.
#include <cuda_runtime.h>

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

using Word = unsigned long long;
constexpr Word FULL = 1ull << 63;

__global__ void ker_mail(float* total, Word* box, const float* x, int n) {
  float v = 0.0f;
  for (long long i = (long long)threadIdx.x * 2 + blockIdx.x; i < n; i += 2 * blockDim.x) v += x[i];
  v = block_sum(v);
  if (threadIdx.x == 0) {
    const Word before = atomicExch(&box[16 * blockIdx.x], FULL | __float_as_uint(v));
    const Word other = atomicExch(&box[16 * (blockIdx.x ^ 1)], FULL >> 1);
    if (before & FULL) __trap();  // only this block fills its box
    if (other & FULL) {
      const float o = __uint_as_float((unsigned)other);
      *total = v + o;  // both may come here, with the same sum
    }
  }
}

extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  Word* box;
  cudaMallocAsync(&box, 32 * sizeof(Word), stream);
  cudaMemsetAsync(box, 0, 32 * sizeof(Word), stream);
  ker_mail<<<2, 512, 0, stream>>>(total, box, x, n);
  cudaFreeAsync(box, stream);
}
