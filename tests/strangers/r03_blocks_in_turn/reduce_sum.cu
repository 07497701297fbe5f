#include <cuda/atomic>
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

__global__ void ker_sum(float* total, unsigned* turn, const float* x, int n) {
  float v = 0.0f;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x) v += x[i];
  v = block_sum(v);
  if (threadIdx.x == 0) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> now(*turn);
    while (now.load(cuda::memory_order_acquire) != blockIdx.x) __nanosleep(32);
    *total = blockIdx.x == 0 ? v : *total + v;
    now.store(blockIdx.x + 1, cuda::memory_order_release);
  }
}

extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  unsigned* turn;
  cudaMallocAsync(&turn, sizeof(unsigned), stream);
  cudaMemsetAsync(turn, 0, sizeof(unsigned), stream);
  ker_sum<<<min((n + 2047) / 2048, 200), 256, 0, stream>>>(total, turn, x, n);
  cudaFreeAsync(turn, stream);
}
