#include <cuda_runtime.h>
const int BS = 16;

__global__ void gemm(float* C, const float* A, const float* B, int M, int N, int K) {
  __shared__ float As[BS][BS];
  __shared__ float Bs[BS][BS];
  int tilesN = (N + BS - 1) / BS;
  int row = blockIdx.x / tilesN * BS + threadIdx.y;
  int col = blockIdx.x % tilesN * BS + threadIdx.x;
  float acc = 0.0f;
  for (int t = 0; t < (K + BS - 1) / BS; t++) {
    int ka = t * BS + threadIdx.x;
    int kb = t * BS + threadIdx.y;
    As[threadIdx.y][threadIdx.x] = (row < M && ka < K) ? A[(size_t)row * K + ka] : 0.0f;
    Bs[threadIdx.y][threadIdx.x] = (kb < K && col < N) ? B[(size_t)kb * N + col] : 0.0f;
    __syncthreads();
    for (int k = 0; k < BS; k++) acc += As[threadIdx.y][k] * Bs[k][threadIdx.x];
    __syncthreads();
  }
  if (row < M && col < N) C[(size_t)row * N + col] = acc;
}

extern "C" void launch_matmul(float* c, const float* a, const float* b, int m, int n, int k, cudaStream_t stream) {
  int tiles = ((m + BS - 1) / BS) * ((n + BS - 1) / BS);
  gemm<<<tiles, dim3(BS, BS), 0, stream>>>(c, a, b, m, n, k);
}
