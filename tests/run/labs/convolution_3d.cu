#include <wb.h>

#define MASK_WIDTH 3
#define TILE_WIDTH 4
#define CACHE_WIDTH (TILE_WIDTH + MASK_WIDTH - 1)

__constant__ float deviceKernel[MASK_WIDTH][MASK_WIDTH][MASK_WIDTH];

__global__ void conv3d(float *input, float *output, const int z_size, const int y_size, const int x_size) {
  __shared__ float cache[CACHE_WIDTH][CACHE_WIDTH][CACHE_WIDTH];
  int tx = threadIdx.x, ty = threadIdx.y, tz = threadIdx.z;
  int x = blockIdx.x * TILE_WIDTH + tx - 1, y = blockIdx.y * TILE_WIDTH + ty - 1, z = blockIdx.z * TILE_WIDTH + tz - 1;
  bool inside = x >= 0 && x < x_size && y >= 0 && y < y_size && z >= 0 && z < z_size;
  cache[tz][ty][tx] = inside ? input[(z * y_size + y) * x_size + x] : 0;
  __syncthreads();
  bool center = tx > 0 && tx <= TILE_WIDTH && ty > 0 && ty <= TILE_WIDTH && tz > 0 && tz <= TILE_WIDTH;
  if (center && inside) {
    float result = 0;
    for (int k = 0; k < MASK_WIDTH; ++k)
      for (int j = 0; j < MASK_WIDTH; ++j)
        for (int i = 0; i < MASK_WIDTH; ++i)
          result += deviceKernel[k][j][i] * cache[tz + k - 1][ty + j - 1][tx + i - 1];
    output[(z * y_size + y) * x_size + x] = result;
  }
}

int main(int argc, char *argv[]) {
  wbArg_t args = wbArg_read(argc, argv);
  int inputLength, kernelLength;
  float *deviceInput, *deviceOutput;
  float *hostInput = (float *)wbImport(wbArg_getInputFile(args, 0), &inputLength);
  float *hostKernel = (float *)wbImport(wbArg_getInputFile(args, 1), &kernelLength);
  float *hostOutput = (float *)malloc(inputLength * sizeof(float));
  int z_size = hostInput[0], y_size = hostInput[1], x_size = hostInput[2];
  int size = inputLength - 3;
  wbLog(TRACE, "The input size is ", z_size, "x", y_size, "x", x_size);
  cudaMalloc(&deviceInput, size * sizeof(float));
  cudaMalloc(&deviceOutput, size * sizeof(float));
  cudaMemcpy(deviceInput, hostInput + 3, size * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(deviceKernel, hostKernel, kernelLength * sizeof(float));
  dim3 dimBlock(CACHE_WIDTH, CACHE_WIDTH, CACHE_WIDTH);
  dim3 dimGrid(ceil(x_size / double(TILE_WIDTH)), ceil(y_size / double(TILE_WIDTH)), ceil(z_size / double(TILE_WIDTH)));
  conv3d<<<dimGrid, dimBlock>>>(deviceInput, deviceOutput, z_size, y_size, x_size);
  cudaDeviceSynchronize();
  cudaMemcpy(hostOutput + 3, deviceOutput, size * sizeof(float), cudaMemcpyDeviceToHost);
  hostOutput[0] = z_size;
  hostOutput[1] = y_size;
  hostOutput[2] = x_size;
  wbSolution(args, hostOutput, inputLength);
  cudaFree(deviceInput);
  cudaFree(deviceOutput);
  free(hostInput);
  free(hostOutput);
  return 0;
}
