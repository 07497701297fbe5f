#include <cuda_runtime.h>

constexpr int STEPS = 20, THREADS = 64;

__device__ float summed(float term) {
  __shared__ float terms[THREADS];
  __syncthreads();
  terms[threadIdx.x] = term;
  __syncthreads();
  float sum = 0.0f;
  for (float each : terms) sum += each;
  return sum;
}

__global__ void ker_eigenvector(float* v, float* work, const float* a, int n) {
  for (int i = threadIdx.x; i < n; i += THREADS) v[i] = 1.0f + 0.37f * (i % 7) - 0.11f * (i % 5);
  for (int step = 0; step < STEPS; ++step) {
    __syncthreads();
    float squares = 0.0f;
    for (int i = threadIdx.x; i < n; i += THREADS) {
      float sum = 0.0f;
      for (int j = 0; j < n; ++j) sum += a[i * n + j] * v[j];
      work[i] = sum;
      squares += sum * sum;
    }
    const float scale = rsqrtf(summed(squares));
    for (int i = threadIdx.x; i < n; i += THREADS) v[i] = work[i] * scale;
  }
}

extern "C" void launch_eigenvector(float* v, float* work, const float* a, int n, cudaStream_t stream) {
  ker_eigenvector<<<1, THREADS, 0, stream>>>(v, work, a, n);
}
