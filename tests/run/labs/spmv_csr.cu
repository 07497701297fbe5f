#include <wb.h>

__global__ void spmvCSRKernel(float *out, int *matColIdx, int *matRowPtr, float *matData, float *vec, int dim) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < dim) {
    float dot = 0;
    for (int elem = matRowPtr[row]; elem < matRowPtr[row + 1]; elem++) dot += matData[elem] * vec[matColIdx[elem]];
    out[row] = dot;
  }
}

int main(int argc, char **argv) {
  wbArg_t args = wbArg_read(argc, argv);
  int numCols, numRows, numData, dim, *deviceCols, *deviceRows;
  float *deviceData, *deviceVector, *deviceOutput;
  int *hostCols = (int *)wbImport(wbArg_getInputFile(args, 0), &numCols, "Integer");
  int *hostRows = (int *)wbImport(wbArg_getInputFile(args, 1), &numRows, "Integer");
  float *hostData = (float *)wbImport(wbArg_getInputFile(args, 2), &numData, "Real");
  float *hostVector = (float *)wbImport(wbArg_getInputFile(args, 3), &dim, "Real");
  float *hostOutput = (float *)malloc(sizeof(float) * dim);
  wbTime_start(GPU, "Allocating GPU memory.");
  cudaMalloc((void **)&deviceCols, numCols * sizeof(int));
  cudaMalloc((void **)&deviceRows, numRows * sizeof(int));
  cudaMalloc((void **)&deviceData, numData * sizeof(float));
  cudaMalloc((void **)&deviceVector, dim * sizeof(float));
  cudaMalloc((void **)&deviceOutput, dim * sizeof(float));
  wbTime_stop(GPU, "Allocating GPU memory.");
  cudaMemcpy(deviceCols, hostCols, numCols * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(deviceRows, hostRows, numRows * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(deviceData, hostData, numData * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(deviceVector, hostVector, dim * sizeof(float), cudaMemcpyHostToDevice);
  spmvCSRKernel<<<(dim - 1) / 32 + 1, 32>>>(deviceOutput, deviceCols, deviceRows, deviceData, deviceVector, dim);
  cudaMemcpy(hostOutput, deviceOutput, dim * sizeof(float), cudaMemcpyDeviceToHost);
  wbSolution(args, hostOutput, dim);
  return 0;
}
