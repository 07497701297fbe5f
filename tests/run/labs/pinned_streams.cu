#include <wb.h>

#define STREAMS 2

__global__ void vecAdd(float *in1, float *in2, float *out, int len) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < len) out[i] = in1[i] + in2[i];
}

int main(int argc, char **argv) {
  wbArg_t args = wbArg_read(argc, argv);
  int len;
  float *a, *b, *c, *da[STREAMS], *db[STREAMS], *dc[STREAMS];
  cudaStream_t stream[STREAMS];
  float *hostInput1 = (float *)wbImport(wbArg_getInputFile(args, 0), &len);
  float *hostInput2 = (float *)wbImport(wbArg_getInputFile(args, 1), &len);
  cudaHostAlloc(&a, len * sizeof(float), cudaHostAllocDefault);
  cudaHostAlloc(&b, len * sizeof(float), cudaHostAllocDefault);
  cudaHostAlloc(&c, len * sizeof(float), cudaHostAllocDefault);
  memcpy(a, hostInput1, len * sizeof(float));
  memcpy(b, hostInput2, len * sizeof(float));
  int segment = 256;
  for (int s = 0; s < STREAMS; ++s) {
    cudaStreamCreate(&stream[s]);
    cudaMalloc(&da[s], segment * sizeof(float));
    cudaMalloc(&db[s], segment * sizeof(float));
    cudaMalloc(&dc[s], segment * sizeof(float));
  }
  for (int begin = 0, turn = 0; begin < len; begin += segment, ++turn) {
    int s = turn % STREAMS, n = min(segment, len - begin);
    cudaMemcpyAsync(da[s], a + begin, n * sizeof(float), cudaMemcpyHostToDevice, stream[s]);
    cudaMemcpyAsync(db[s], b + begin, n * sizeof(float), cudaMemcpyHostToDevice, stream[s]);
    vecAdd<<<(n + 127) / 128, 128, 0, stream[s]>>>(da[s], db[s], dc[s], n);
    cudaMemcpyAsync(c + begin, dc[s], n * sizeof(float), cudaMemcpyDeviceToHost, stream[s]);
  }
  for (int s = 0; s < STREAMS; ++s) cudaStreamSynchronize(stream[s]);
  wbSolution(args, c, len);
  for (int s = 0; s < STREAMS; ++s) {
    cudaFree(da[s]);
    cudaFree(db[s]);
    cudaFree(dc[s]);
    cudaStreamDestroy(stream[s]);
  }
  cudaFreeHost(a);
  cudaFreeHost(b);
  cudaFreeHost(c);
  return 0;
}
