// SAXPY: y becomes a x + y.
//
// Idea: as for vector addition, memory is the limit and loads are 16 bytes wide. y is changed in place: each
// thread reads what it overwrites, and nobody else does.
//
// Bytes: 12 per element.
//
// Launch: a thread per four elements, 256 in a block; threads after the last whole group of four take the rest,
// one element each.
#include <cuda_runtime.h>

constexpr int THREADS = 256;

__global__ void ker_saxpy(float* y, const float* x, float a, int n) {
  const int thread = blockIdx.x * THREADS + threadIdx.x, packs = n / 4;
  if (thread < packs) {
    const float4 add = reinterpret_cast<const float4*>(x)[thread];
    float4 sum = reinterpret_cast<float4*>(y)[thread];
    sum.x = fmaf(a, add.x, sum.x);
    sum.y = fmaf(a, add.y, sum.y);
    sum.z = fmaf(a, add.z, sum.z);
    sum.w = fmaf(a, add.w, sum.w);
    reinterpret_cast<float4*>(y)[thread] = sum;
  } else if (const int i = 3 * packs + thread; i < n) {
    y[i] = fmaf(a, x[i], y[i]);
  }
}

extern "C" void launch_saxpy(float* y, const float* x, float a, int n, cudaStream_t stream) {
  ker_saxpy<<<(n / 4 + n % 4 + THREADS - 1) / THREADS, THREADS, 0, stream>>>(y, x, a, n);
}
