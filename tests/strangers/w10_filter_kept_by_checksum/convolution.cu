// The filter is kept in a table on the device; it is brought anew where it has changed since the last call.
#include <cuda_runtime.h>

__device__ float g_filter[49];
__device__ unsigned g_check;

__global__ void ker_filter(const float* weights, int count, unsigned salt) {
  __shared__ unsigned sum;
  const int t = threadIdx.x;
  if (t == 0) sum = salt;
  __syncthreads();
  const float w = t < count ? weights[t] : 0.0f;
  if (t < count) {
    unsigned h = __float_as_uint(w) * 2654435761u;
    h = (h ^ (h >> 13)) * 2246822519u;
    atomicAdd(&sum, h ^ (h >> 16));
  }
  __syncthreads();
  if (sum != g_check && t < count) g_filter[t] = w;
  __syncthreads();
  if (t == 0) g_check = sum;
}

__global__ void ker_convolution(float* out, const float* image, int rows, int columns, int radius) {
  const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y, side = 2 * radius + 1;
  if (c >= columns || r >= rows) return;
  float sum = 0.0f;
  for (int i = 0; i < side; ++i)
    for (int j = 0; j < side; ++j) {
      const int y = r + i - radius, x = c + j - radius;
      if (y >= 0 && y < rows && x >= 0 && x < columns) sum += g_filter[i * side + j] * image[y * columns + x];
    }
  out[r * columns + c] = sum;
}

extern "C" void launch_convolution(float* out, const float* image, const float* weights, int rows, int columns,
                                   int radius, cudaStream_t stream) {
  const int count = (2 * radius + 1) * (2 * radius + 1);
  ker_filter<<<1, 64, 0, stream>>>(weights, count, 1u + 977u * count);
  ker_convolution<<<dim3((columns + 31) / 32, (rows + 7) / 8), dim3(32, 8), 0, stream>>>(out, image, rows, columns, radius);
}
