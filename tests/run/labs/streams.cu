#include <wb.h>

#define STREAMS 4

__global__ void vecAdd(float *in1, float *in2, float *out, int len) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < len) out[i] = in1[i] + in2[i];
}

int main(int argc, char **argv) {
  wbArg_t args = wbArg_read(argc, argv);
  int inputLength;
  float *hostInput1 = (float *)wbImport(wbArg_getInputFile(args, 0), &inputLength);
  float *hostInput2 = (float *)wbImport(wbArg_getInputFile(args, 1), &inputLength);
  float *hostOutput, *in1[STREAMS], *in2[STREAMS], *out[STREAMS];
  cudaStream_t stream[STREAMS];
  int seg = (inputLength - 1) / STREAMS + 1;

  wbCheck(cudaHostAlloc((void **)&hostOutput, inputLength * sizeof(float), cudaHostAllocDefault));
  for (int s = 0; s < STREAMS; s++) {
    wbCheck(cudaStreamCreate(&stream[s]));
    wbCheck(cudaMalloc((void **)&in1[s], seg * sizeof(float)));
    wbCheck(cudaMalloc((void **)&in2[s], seg * sizeof(float)));
    wbCheck(cudaMalloc((void **)&out[s], seg * sizeof(float)));
  }
  wbTime_start(CopyAsync, "Copying and computing");
  for (int s = 0; s < STREAMS; s++) {
    int begin = s * seg, length = min(seg, inputLength - begin);
    if (length <= 0) continue;
    cudaMemcpyAsync(in1[s], hostInput1 + begin, length * sizeof(float), cudaMemcpyHostToDevice, stream[s]);
    cudaMemcpyAsync(in2[s], hostInput2 + begin, length * sizeof(float), cudaMemcpyHostToDevice, stream[s]);
    vecAdd<<<(length - 1) / 256 + 1, 256, 0, stream[s]>>>(in1[s], in2[s], out[s], length);
    cudaMemcpyAsync(hostOutput + begin, out[s], length * sizeof(float), cudaMemcpyDeviceToHost, stream[s]);
  }
  wbCheck(cudaDeviceSynchronize());
  wbTime_stop(CopyAsync, "Copying and computing");
  wbSolution(args, hostOutput, inputLength);
  for (int s = 0; s < STREAMS; s++) cudaStreamDestroy(stream[s]);
  return 0;
}
