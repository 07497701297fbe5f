#include <cuda_runtime.h>

__global__ void ker_begin(int* parent, int* level, int n) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= n) return;
  parent[v] = v == 0 ? 0 : -1;
  level[v] = v == 0 ? 0 : -1;
}

__global__ void ker_step(int* parent, int* level, int* more, const int* begin, const int* targets, int n,
                         int step) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= n || atomicAdd(&level[v], 0) != step) return;
  for (int edge = begin[v]; edge < begin[v + 1]; ++edge) {
    const int target = targets[edge];
    if (atomicCAS(&level[target], -1, step + 1) == -1) {
      parent[target] = v;
      atomicExch(more, 1);
    }
  }
}

extern "C" void launch_bfs(int* parent, const int* begin, const int* targets, int n, int m,
                           cudaStream_t stream) {
  const int blocks = (n + 127) / 128;
  int *level, *more, host = 1;
  cudaMallocAsync((void**)&level, n * sizeof(int), stream);
  cudaMallocAsync((void**)&more, sizeof(int), stream);
  ker_begin<<<blocks, 128, 0, stream>>>(parent, level, n);
  for (int step = 0; host; ++step) {
    cudaMemsetAsync(more, 0, sizeof(int), stream);
    ker_step<<<blocks, 128, 0, stream>>>(parent, level, more, begin, targets, n, step);
    cudaMemcpyAsync(&host, more, sizeof(int), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
  }
  cudaFreeAsync(level, stream);
  cudaFreeAsync(more, stream);
}
