#include <wb.h>

__global__ void spmvJDSKernel(float *out, int *matColStart, int *matCols, int *matRowPerm, int *matRows,
                              float *matData, float *vec, int dim) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < dim) {
    float sum = 0;
    for (int k = 0; k < matRows[row]; ++k) sum += matData[matColStart[k] + row] * vec[matCols[matColStart[k] + row]];
    out[matRowPerm[row]] = sum;
  }
}

int main(int argc, char **argv) {
  wbArg_t args;
  int *hostCSRCols, *hostCSRRows, *hostJDSColStart, *hostJDSCols, *hostJDSRowPerm, *hostJDSRows;
  float *hostCSRData, *hostJDSData, *hostVector, *hostOutput;
  int *deviceJDSColStart, *deviceJDSCols, *deviceJDSRowPerm, *deviceJDSRows;
  float *deviceJDSData, *deviceVector, *deviceOutput;
  int dim, ncols, nrows, ndata, maxRowNNZ;

  args = wbArg_read(argc, argv);
  hostCSRCols = (int *)wbImport(wbArg_getInputFile(args, 0), &ncols, "Integer");
  hostCSRRows = (int *)wbImport(wbArg_getInputFile(args, 1), &nrows, "Integer");
  hostCSRData = (float *)wbImport(wbArg_getInputFile(args, 2), &ndata, "Real");
  hostVector = (float *)wbImport(wbArg_getInputFile(args, 3), &dim, "Real");
  hostOutput = (float *)malloc(sizeof(float) * dim);

  CSRToJDS(dim, hostCSRRows, hostCSRCols, hostCSRData, &hostJDSRowPerm, &hostJDSRows, &hostJDSColStart, &hostJDSCols,
           &hostJDSData);
  maxRowNNZ = hostJDSRows[0];

  cudaMalloc((void **)&deviceJDSColStart, sizeof(int) * maxRowNNZ);
  cudaMalloc((void **)&deviceJDSCols, sizeof(int) * ndata);
  cudaMalloc((void **)&deviceJDSRowPerm, sizeof(int) * dim);
  cudaMalloc((void **)&deviceJDSRows, sizeof(int) * dim);
  cudaMalloc((void **)&deviceJDSData, sizeof(float) * ndata);
  cudaMalloc((void **)&deviceVector, sizeof(float) * dim);
  cudaMalloc((void **)&deviceOutput, sizeof(float) * dim);
  cudaMemcpy(deviceJDSColStart, hostJDSColStart, sizeof(int) * maxRowNNZ, cudaMemcpyHostToDevice);
  cudaMemcpy(deviceJDSCols, hostJDSCols, sizeof(int) * ndata, cudaMemcpyHostToDevice);
  cudaMemcpy(deviceJDSRowPerm, hostJDSRowPerm, sizeof(int) * dim, cudaMemcpyHostToDevice);
  cudaMemcpy(deviceJDSRows, hostJDSRows, sizeof(int) * dim, cudaMemcpyHostToDevice);
  cudaMemcpy(deviceJDSData, hostJDSData, sizeof(float) * ndata, cudaMemcpyHostToDevice);
  cudaMemcpy(deviceVector, hostVector, sizeof(float) * dim, cudaMemcpyHostToDevice);
  spmvJDSKernel<<<(dim - 1) / 512 + 1, 512>>>(deviceOutput, deviceJDSColStart, deviceJDSCols, deviceJDSRowPerm,
                                              deviceJDSRows, deviceJDSData, deviceVector, dim);
  cudaMemcpy(hostOutput, deviceOutput, sizeof(float) * dim, cudaMemcpyDeviceToHost);
  wbSolution(args, hostOutput, dim);
  free(hostOutput);
  return 0;
}
