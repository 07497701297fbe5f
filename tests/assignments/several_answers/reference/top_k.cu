#include <cuda_runtime.h>

__global__ void ker_top_k(int* index, const float* x, int n, int k) {
  const float* row = x + blockIdx.x * n;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    int larger = 0;
    for (int j = 0; j < n; ++j) larger += row[j] > row[i] || (row[j] == row[i] && j < i);
    if (larger < k) index[blockIdx.x * k + larger] = i;
  }
}

extern "C" void launch_top_k(int* index, const float* x, int rows, int n, int k, cudaStream_t stream) {
  ker_top_k<<<rows, 128, 0, stream>>>(index, x, n, k);
}
