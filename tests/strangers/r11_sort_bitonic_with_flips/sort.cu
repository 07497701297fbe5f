#include <cuda_runtime.h>

__device__ void order(int* keys, unsigned i, unsigned j, int n) {
  if (j >= (unsigned)n) return;
  const int a = keys[i], b = keys[j];
  if (b < a) keys[i] = b, keys[j] = a;
}
__global__ void ker_small(int* sorted, const int* keys, int n) {
  __shared__ int tile[1024];
  const int base = blockIdx.x * 1024, t = threadIdx.x, here = min(1024, n - base);
  for (int k = t; k < here; k += 512) tile[k] = keys[base + k];
  for (unsigned size = 2; size <= 1024; size *= 2) {
    __syncthreads();
    const unsigned h = size / 2, i = t / h * size + t % h;
    order(tile, i, i ^ (size - 1), here);
    for (unsigned d = h / 2; d > 0; d /= 2) {
      __syncthreads();
      const unsigned q = t / d * 2 * d + t % d;
      order(tile, q, q + d, here);
    }
  }
  __syncthreads();
  for (int k = t; k < here; k += 512) sorted[base + k] = tile[k];
}
__global__ void ker_mirror(int* keys, int n, unsigned size) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x, h = size / 2, i = t / h * size + t % h;
  order(keys, i, i ^ (size - 1), n);
}
__global__ void ker_step(int* keys, int n, unsigned d) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x, i = t / d * 2 * d + t % d;
  order(keys, i, i + d, n);
}

extern "C" void launch_sort(int* sorted, const int* keys, int n, cudaStream_t stream) {
  ker_small<<<(n + 1023) / 1024, 512, 0, stream>>>(sorted, keys, n);
  unsigned whole = 1024;
  while (whole < (unsigned)n) whole *= 2;
  for (unsigned size = 2048; size <= whole; size *= 2) {
    ker_mirror<<<whole / 512, 256, 0, stream>>>(sorted, n, size);
    for (unsigned d = size / 4; d > 0; d /= 2) ker_step<<<whole / 512, 256, 0, stream>>>(sorted, n, d);
  }
}
