#include <wb.h>

#define BLOCK_SIZE 512

__global__ void total(float *input, float *output, int len) {
  __shared__ float partialSum[2 * BLOCK_SIZE];
  unsigned int t = threadIdx.x, start = 2 * blockIdx.x * BLOCK_SIZE;
  partialSum[t] = start + t < len ? input[start + t] : 0;
  partialSum[BLOCK_SIZE + t] = start + BLOCK_SIZE + t < len ? input[start + BLOCK_SIZE + t] : 0;
  for (unsigned int stride = BLOCK_SIZE; stride >= 1; stride >>= 1) {
    __syncthreads();
    if (t < stride) partialSum[t] += partialSum[t + stride];
  }
  if (t == 0) output[blockIdx.x] = partialSum[t];
}

int main(int argc, char **argv) {
  int ii;
  wbArg_t args;
  float *hostInput, *hostOutput, *deviceInput, *deviceOutput;
  int numInputElements, numOutputElements;

  args = wbArg_read(argc, argv);
  hostInput = (float *)wbImport(wbArg_getInputFile(args, 0), &numInputElements);
  numOutputElements = numInputElements / (BLOCK_SIZE << 1);
  if (numInputElements % (BLOCK_SIZE << 1)) numOutputElements++;
  hostOutput = (float *)malloc(numOutputElements * sizeof(float));

  cudaMalloc(&deviceInput, sizeof(float) * numInputElements);
  cudaMalloc(&deviceOutput, sizeof(float) * numOutputElements);
  cudaMemcpy(deviceInput, hostInput, sizeof(float) * numInputElements, cudaMemcpyHostToDevice);
  total<<<numOutputElements, BLOCK_SIZE>>>(deviceInput, deviceOutput, numInputElements);
  cudaMemcpy(hostOutput, deviceOutput, sizeof(float) * numOutputElements, cudaMemcpyDeviceToHost);

  for (ii = 1; ii < numOutputElements; ii++) hostOutput[0] += hostOutput[ii];
  cudaFree(deviceInput);
  cudaFree(deviceOutput);
  wbSolution(args, hostOutput, 1);
  free(hostInput);
  free(hostOutput);
  return 0;
}
