#include <wb.h>

__global__ void total(float *input, float *output, int len) {
  __shared__ float warps[8];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < len; i += gridDim.x * blockDim.x) sum += input[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < 8; ++w) sum += warps[w];
    atomicAdd(output, sum);
  }
}

int main(int argc, char **argv) {
  wbArg_t args = wbArg_read(argc, argv);
  int len;
  float *deviceInput, *deviceOutput, hostOutput = 0;
  float *hostInput = (float *)wbImport(wbArg_getInputFile(args, 0), &len);
  cudaMalloc(&deviceInput, len * sizeof(float));
  cudaMalloc(&deviceOutput, sizeof(float));
  cudaMemset(deviceOutput, 0, sizeof(float));
  cudaMemcpy(deviceInput, hostInput, len * sizeof(float), cudaMemcpyHostToDevice);
  total<<<3, 256>>>(deviceInput, deviceOutput, len);
  cudaMemcpy(&hostOutput, deviceOutput, sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(deviceInput);
  cudaFree(deviceOutput);
  wbSolution(args, &hostOutput, 1);
  return 0;
}
