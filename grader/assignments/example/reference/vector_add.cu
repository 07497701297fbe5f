// The reference: a file for each that the problems name, with kernels that earn full marks.
// It proves that full marks are possible; mutants are made of it, and it is never shown to students.
#include <cuda_runtime.h>

constexpr int THREADS = 128;

__global__ void ker_vector_add(float* z, const float* x, const float* y, float a, int n) {
  const int i = blockIdx.x * THREADS + threadIdx.x;
  if (i < n) z[i] = a * x[i] + y[i];
}

extern "C" void launch_vector_add(float* z, const float* x, const float* y, float a, int n, cudaStream_t stream) {
  ker_vector_add<<<(n + THREADS - 1) / THREADS, THREADS, 0, stream>>>(z, x, y, a, n);
}
