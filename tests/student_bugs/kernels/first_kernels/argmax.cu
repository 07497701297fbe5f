#include <cuda_runtime.h>
#include <limits.h>
#include <math.h>

__global__ void findMax(int* place, const float* x, int n) {
  __shared__ float val[256];
  __shared__ int idx[256];
  int t = threadIdx.x;
  float bestVal = -INFINITY;
  int bestIdx = INT_MAX;
  for (int i = t; i < n; i += 256) {
    if (x[i] > bestVal || (x[i] == bestVal && i < bestIdx)) {
      bestVal = x[i];
      bestIdx = i;
    }
  }
  val[t] = bestVal;
  idx[t] = bestIdx;
  __syncthreads();
  for (int s = 128; s > 0; s >>= 1) {
    if (t < s) {
      if (val[t + s] > val[t] || (val[t + s] == val[t] && idx[t + s] < idx[t])) {
        val[t] = val[t + s];
        idx[t] = idx[t + s];
      }
    }
    __syncthreads();
  }
  if (t == 0) *place = idx[0];
}

extern "C" void launch_argmax(int* place, const float* x, int n, cudaStream_t stream) {
  findMax<<<1, 256, 0, stream>>>(place, x, n);
}
