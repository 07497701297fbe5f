#include <cuda_runtime.h>
#define T 16

__global__ void flip(float* out, const float* matrix, int rows, int columns) {
  __shared__ float block[T][T + 1];
  int across = (columns + T - 1) / T;
  int bx = blockIdx.x % across, by = blockIdx.x / across;
  int c = bx * T + threadIdx.x;
  int r = by * T + threadIdx.y;
  if (r < rows && c < columns) block[threadIdx.y][threadIdx.x] = matrix[(size_t)r * columns + c];
  __syncthreads();
  int oc = by * T + threadIdx.x;
  int orow = bx * T + threadIdx.y;
  if (orow < columns && oc < rows) out[(size_t)orow * rows + oc] = block[threadIdx.x][threadIdx.y];
}

extern "C" void launch_transpose(float* out, const float* matrix, int rows, int columns, cudaStream_t stream) {
  dim3 threads(T, T);
  int blocks = ((columns + T - 1) / T) * ((rows + T - 1) / T);
  flip<<<blocks, threads, 0, stream>>>(out, matrix, rows, columns);
}
