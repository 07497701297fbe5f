// Two blocks; the one that comes second adds both halves.
#include <cuda_runtime.h>
constexpr unsigned long long EMPTY = 0xffffffffffffffffull;

__global__ void ker_two(float* total, unsigned long long* words, const float* x, int n) {
  __shared__ double part[32];
  const int half = n / 2, begin = blockIdx.x == 0 ? 0 : half, end = blockIdx.x == 0 ? half : n;
  double sum = 0;
  for (int i = begin + threadIdx.x; i < end; i += blockDim.x) sum += x[i];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    double s = 0;
    for (int w = 0; w < 32; ++w) s += part[w];
    unsigned long long old = atomicExch(words + blockIdx.x, (unsigned long long)__double_as_longlong(s));
    // The other one may have taken mine already and left a mark, which cannot be here yet: old is EMPTY.
    unsigned long long other = atomicExch(words + 1 - blockIdx.x, old - 1);
    if (other < EMPTY - 1) *total = (float)(s + __longlong_as_double((long long)other));
    else if (other == EMPTY) atomicCAS(words + 1 - blockIdx.x, EMPTY - 1, EMPTY);
  }
}

extern "C" void launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream) {
  unsigned long long* words;
  cudaMallocAsync(&words, 16, stream);
  cudaMemsetAsync(words, 0xff, 16, stream);
  ker_two<<<2, 1024, 0, stream>>>(total, words, x, n);
  cudaFreeAsync(words, stream);
}
