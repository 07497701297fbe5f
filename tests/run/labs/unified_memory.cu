#include <wb.h>

__global__ void vecAdd(float *in1, float *in2, float *out, int len) {
  int index = threadIdx.x + blockIdx.x * blockDim.x;
  int stride = blockDim.x * gridDim.x;
  for (int i = index; i < len; i += stride) out[i] = in1[i] + in2[i];
}

int main(int argc, char **argv) {
  wbArg_t args = wbArg_read(argc, argv);
  int inputLength;
  float *input1, *input2, *output;
  float *hostInput1 = (float *)wbImport(wbArg_getInputFile(args, 0), &inputLength);
  float *hostInput2 = (float *)wbImport(wbArg_getInputFile(args, 1), &inputLength);
  cudaMallocManaged(&input1, inputLength * sizeof(float));
  cudaMallocManaged(&input2, inputLength * sizeof(float));
  cudaMallocManaged(&output, inputLength * sizeof(float));
  memcpy(input1, hostInput1, inputLength * sizeof(float));
  memcpy(input2, hostInput2, inputLength * sizeof(float));
  vecAdd<<<4, 128>>>(input1, input2, output, inputLength);
  cudaDeviceSynchronize();
  wbSolution(args, output, inputLength);
  cudaFree(input1);
  cudaFree(input2);
  cudaFree(output);
  return 0;
}
