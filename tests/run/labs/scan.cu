#include <wb.h>

#define BLOCK_SIZE 256

__global__ void scan(float *input, float *output, float *aux, int len) {
  __shared__ float T[2 * BLOCK_SIZE];
  int t = threadIdx.x, start = 2 * blockIdx.x * BLOCK_SIZE;
  T[t] = start + t < len ? input[start + t] : 0;
  T[BLOCK_SIZE + t] = start + BLOCK_SIZE + t < len ? input[start + BLOCK_SIZE + t] : 0;
  __syncthreads();
  for (int stride = 1; stride <= BLOCK_SIZE; stride *= 2) {
    int index = (t + 1) * stride * 2 - 1;
    if (index < 2 * BLOCK_SIZE) T[index] += T[index - stride];
    __syncthreads();
  }
  for (int stride = BLOCK_SIZE / 2; stride; stride /= 2) {
    int index = (t + 1) * stride * 2 - 1;
    if (index + stride < 2 * BLOCK_SIZE) T[index + stride] += T[index];
    __syncthreads();
  }
  if (start + t < len) output[start + t] = T[t];
  if (start + BLOCK_SIZE + t < len) output[start + BLOCK_SIZE + t] = T[BLOCK_SIZE + t];
  if (aux && t == 0) aux[blockIdx.x] = T[2 * BLOCK_SIZE - 1];
}

__global__ void fixup(float *input, float *aux, int len) {
  int t = threadIdx.x, start = 2 * blockIdx.x * BLOCK_SIZE;
  if (blockIdx.x) {
    if (start + t < len) input[start + t] += aux[blockIdx.x - 1];
    if (start + BLOCK_SIZE + t < len) input[start + BLOCK_SIZE + t] += aux[blockIdx.x - 1];
  }
}

int main(int argc, char **argv) {
  wbArg_t args;
  float *hostInput, *hostOutput, *deviceInput, *deviceOutput, *deviceAuxArray, *deviceAuxScannedArray;
  int numElements;

  args = wbArg_read(argc, argv);
  hostInput = (float *)wbImport(wbArg_getInputFile(args, 0), &numElements);
  hostOutput = (float *)malloc(numElements * sizeof(float));
  wbLog(TRACE, "The number of input elements in the input is ", numElements);

  wbCheck(cudaMalloc((void **)&deviceInput, numElements * sizeof(float)));
  wbCheck(cudaMalloc((void **)&deviceOutput, numElements * sizeof(float)));
  wbCheck(cudaMalloc(&deviceAuxArray, (BLOCK_SIZE << 1) * sizeof(float)));
  wbCheck(cudaMalloc(&deviceAuxScannedArray, (BLOCK_SIZE << 1) * sizeof(float)));
  wbCheck(cudaMemset(deviceOutput, 0, numElements * sizeof(float)));
  wbCheck(cudaMemcpy(deviceInput, hostInput, numElements * sizeof(float), cudaMemcpyHostToDevice));

  int numBlocks = ceil((float)numElements / (BLOCK_SIZE << 1));
  dim3 dimGrid(numBlocks, 1, 1), dimBlock(BLOCK_SIZE, 1, 1);
  scan<<<dimGrid, dimBlock>>>(deviceInput, deviceOutput, deviceAuxArray, numElements);
  cudaDeviceSynchronize();
  scan<<<dim3(1, 1, 1), dimBlock>>>(deviceAuxArray, deviceAuxScannedArray, NULL, numBlocks);
  cudaDeviceSynchronize();
  fixup<<<dimGrid, dimBlock>>>(deviceOutput, deviceAuxScannedArray, numElements);
  cudaDeviceSynchronize();
  wbCheck(cudaMemcpy(hostOutput, deviceOutput, numElements * sizeof(float), cudaMemcpyDeviceToHost));

  cudaFree(deviceInput);
  cudaFree(deviceOutput);
  cudaFree(deviceAuxArray);
  cudaFree(deviceAuxScannedArray);
  wbSolution(args, hostOutput, numElements);
  free(hostInput);
  free(hostOutput);
  return 0;
}
