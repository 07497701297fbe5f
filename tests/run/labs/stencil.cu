#include <wb.h>

#define In(z, y, x) input[((z) * height + (y)) * width + (x)]

__global__ void stencil(float *input, float *output, int depth, int height, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float bottom = 0, current = In(0, y, x), top = depth > 1 ? In(1, y, x) : 0;
  for (int z = 0; z < depth; ++z) {
    float left = x > 0 ? In(z, y, x - 1) : 0, right = x + 1 < width ? In(z, y, x + 1) : 0;
    float up = y > 0 ? In(z, y - 1, x) : 0, down = y + 1 < height ? In(z, y + 1, x) : 0;
    output[(z * height + y) * width + x] = bottom + top + left + right + up + down - 6 * current;
    bottom = current;
    current = top;
    top = z + 2 < depth ? In(z + 2, y, x) : 0;
  }
}

int main(int argc, char *argv[]) {
  wbArg_t arg = wbArg_read(argc, argv);
  int length;
  float *deviceInput, *deviceOutput;
  float *host = (float *)wbImport(wbArg_getInputFile(arg, 0), &length);
  int depth = host[0], height = host[1], width = host[2];
  size_t bytes = (length - 3) * sizeof(float);
  cudaMalloc((void **)&deviceInput, bytes);
  cudaMalloc((void **)&deviceOutput, bytes);
  cudaMemcpy(deviceInput, host + 3, bytes, cudaMemcpyHostToDevice);
  dim3 block(16, 8), grid((width + 15) / 16, (height + 7) / 8);
  stencil<<<grid, block>>>(deviceInput, deviceOutput, depth, height, width);
  cudaMemcpy(host + 3, deviceOutput, bytes, cudaMemcpyDeviceToHost);
  wbSolution(arg, host, length);
  cudaFree(deviceInput);
  cudaFree(deviceOutput);
  return 0;
}
