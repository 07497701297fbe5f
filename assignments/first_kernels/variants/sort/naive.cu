// A bitonic network in global memory, a launch for each step. It is that for the next power of two: what would be
// behind the end counts as the largest, and stays there.
#include <cuda_runtime.h>

__global__ void exchange(int* keys, int n, int half, bool mirrored) {
  const int pair = blockIdx.x * blockDim.x + threadIdx.x, offset = pair % half, low = pair / half * 2 * half + offset;
  const int high = mirrored ? low + 2 * (half - offset) - 1 : low + half;
  if (high >= n) return;
  const int a = keys[low], b = keys[high];
  if (a > b) {
    keys[low] = b;
    keys[high] = a;
  }
}

extern "C" void launch_sort(int* sorted, const int* keys, int n, cudaStream_t stream) {
  cudaMemcpyAsync(sorted, keys, sizeof(int) * n, cudaMemcpyDeviceToDevice, stream);
  int pairs = 1;
  while (2 * pairs < n) pairs *= 2;
  for (int block = 1; block < n; block *= 2)
    for (int half = block; half > 0; half /= 2)
      exchange<<<(pairs + 255) / 256, 256, 0, stream>>>(sorted, n, half, half == block);
}
