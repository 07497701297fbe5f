// A launch for each step, from another vector, and the sign of the first element is negative.
#include <cuda_runtime.h>

__global__ void ker_begin(float* v, int n) {
  const int i = threadIdx.x;
  if (i < n) v[i] = i % 3 ? -0.7f : 0.9f + 0.01f * i;
}

__global__ void ker_step(float* to, const float* from, const float* a, int n) {
  __shared__ float squares;
  if (threadIdx.x == 0) squares = 0.0f;
  __syncthreads();
  const int i = threadIdx.x;
  float sum = 0.0f;
  for (int j = 0; i < n && j < n; ++j) sum += a[i * n + j] * from[j];
  atomicAdd(&squares, sum * sum);
  __syncthreads();
  if (i < n) to[i] = sum / sqrtf(squares);
}

__global__ void ker_turn(float* v, int n) {
  const float sign = v[0] > 0.0f ? -1.0f : 1.0f;
  __syncthreads();
  if (threadIdx.x < n) v[threadIdx.x] *= sign;
}

extern "C" void launch_eigenvector(float* v, float* work, const float* a, int n, cudaStream_t stream) {
  ker_begin<<<1, 128, 0, stream>>>(v, n);
  for (int step = 0; step < 10; ++step) {
    ker_step<<<1, 128, 0, stream>>>(work, v, a, n);
    ker_step<<<1, 128, 0, stream>>>(v, work, a, n);
  }
  ker_turn<<<1, 128, 0, stream>>>(v, n);
}
