#include <wb.h>

#define SECTION_SIZE 256

__global__ void koggeStone(float *X, float *Y, float *sums, int len) {
  __shared__ float XY[SECTION_SIZE];
  int i = blockIdx.x * SECTION_SIZE + threadIdx.x;
  XY[threadIdx.x] = i < len ? X[i] : 0.0f;
  for (unsigned int stride = 1; stride < blockDim.x; stride *= 2) {
    __syncthreads();
    float temp = 0;
    if (threadIdx.x >= stride) temp = XY[threadIdx.x - stride];
    __syncthreads();
    XY[threadIdx.x] += temp;
  }
  if (i < len) Y[i] = XY[threadIdx.x];
  if (sums != NULL && threadIdx.x == SECTION_SIZE - 1) sums[blockIdx.x] = XY[threadIdx.x];
}

__global__ void add(float *Y, float *sums, int len) {
  int i = (blockIdx.x + 1) * SECTION_SIZE + threadIdx.x;
  if (i < len) Y[i] += sums[blockIdx.x];
}

int main(int argc, char **argv) {
  wbArg_t args = wbArg_read(argc, argv);
  int len;
  float *x, *y, *sums, *scanned;
  float *hostInput = (float *)wbImport(wbArg_getInputFile(args, 0), &len);
  float *hostOutput = (float *)malloc(len * sizeof(float));
  int sections = (len + SECTION_SIZE - 1) / SECTION_SIZE;
  cudaMalloc(&x, len * sizeof(float));
  cudaMalloc(&y, len * sizeof(float));
  cudaMalloc(&sums, sections * sizeof(float));
  cudaMalloc(&scanned, sections * sizeof(float));
  cudaMemcpy(x, hostInput, len * sizeof(float), cudaMemcpyHostToDevice);
  koggeStone<<<sections, SECTION_SIZE>>>(x, y, sums, len);
  koggeStone<<<1, SECTION_SIZE>>>(sums, scanned, NULL, sections);
  if (sections > 1) add<<<sections - 1, SECTION_SIZE>>>(y, scanned, len);
  cudaMemcpy(hostOutput, y, len * sizeof(float), cudaMemcpyDeviceToHost);
  wbSolution(args, hostOutput, len);
  cudaFree(x);
  cudaFree(y);
  cudaFree(sums);
  cudaFree(scanned);
  return 0;
}
