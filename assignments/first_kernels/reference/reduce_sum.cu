// The sum of a vector.
//
// Idea: every block adds up a share of the vector and leaves one partial sum; a second kernel of one block adds
// those up. Blocks cannot wait for each other, but kernels on a stream do. Nothing is added by atomics, so the
// result has the same bits every time.
//
// Bytes: 4 per element.
//
// Launch: at most 1024 blocks of 512 threads, which walk over the vector in loads of 16 bytes; then one block.
#include <cuda_runtime.h>

constexpr int THREADS = 512, BLOCKS = 1024;

// The sum over all threads of the block, for thread 0.
__device__ float sum_over_block(float sum) {
  __shared__ float sums[THREADS / 32];
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffff, sum, distance);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < THREADS / 32 ? sums[threadIdx.x] : 0.0f;
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffff, sum, distance);
  }
  return sum;
}

__global__ void ker_reduce_sum(float* sums, const float* x, int n) {
  const int packs = n / 4, step = gridDim.x * THREADS, thread = blockIdx.x * THREADS + threadIdx.x;
  float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (int i = thread; i < packs; i += step) {
    const float4 more = reinterpret_cast<const float4*>(x)[i];
    four.x += more.x;
    four.y += more.y;
    four.z += more.z;
    four.w += more.w;
  }
  float sum = (four.x + four.y) + (four.z + four.w);
  if (const int i = 4 * packs + thread; i < n) sum += x[i];
  sum = sum_over_block(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  const int blocks = min((n / 4 + THREADS) / THREADS, BLOCKS);
  if (blocks == 1) {
    ker_reduce_sum<<<1, THREADS, 0, stream>>>(total, x, n);
    return;
  }
  float* sums;
  cudaMallocAsync(&sums, blocks * sizeof(float), stream);
  ker_reduce_sum<<<blocks, THREADS, 0, stream>>>(sums, x, n);
  ker_reduce_sum<<<1, THREADS, 0, stream>>>(total, sums, blocks);
  cudaFreeAsync(sums, stream);
}
