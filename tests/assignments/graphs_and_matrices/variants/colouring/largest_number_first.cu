// In each round, vertices take a colour whose neighbours of larger numbers have one.
#include <cuda_runtime.h>

__global__ void ker_colouring(int* colour, const int* begin, const int* targets, int n) {
  for (int v = threadIdx.x; v < n; v += blockDim.x) colour[v] = -1;
  __shared__ int left;
  do {
    __syncthreads();
    if (threadIdx.x == 0) left = 0;
    __syncthreads();
    for (int first = 0; first < n; first += blockDim.x) {
      const int v = first + threadIdx.x;
      int own = v < n && colour[v] < 0 ? 0 : -1;
      for (int edge = own < 0 ? 0 : begin[v]; own >= 0 && edge < begin[v + 1]; ++edge)
        if (targets[edge] > v && colour[targets[edge]] < 0) own = -2;
      if (own == -2) atomicAdd(&left, 1);
      for (bool taken = own == 0; taken;) {
        taken = false;
        for (int edge = begin[v]; edge < begin[v + 1]; ++edge) taken |= colour[targets[edge]] == own;
        own += taken;
      }
      __syncthreads();
      if (own >= 0) colour[v] = own;
      __syncthreads();
    }
  } while (left);
}

extern "C" void launch_colouring(int* colour, const int* begin, const int* targets, int n, int edges,
                                 cudaStream_t stream) {
  ker_colouring<<<1, 128, 0, stream>>>(colour, begin, targets, n);
}
