#include <wb.h>

#define NUM_BINS 4096

#define CUDA_CHECK(ans) gpuAssert((ans), __FILE__, __LINE__)
inline void gpuAssert(cudaError_t code, const char *file, int line, bool abort = true) {
  if (code != cudaSuccess) {
    fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
    if (abort) exit(code);
  }
}

__global__ void histogram_kernel(unsigned int *input, unsigned int *bins, unsigned int num_elements,
                                 unsigned int num_bins) {
  extern __shared__ unsigned int bins_s[];
  for (unsigned int binIdx = threadIdx.x; binIdx < num_bins; binIdx += blockDim.x) bins_s[binIdx] = 0;
  __syncthreads();
  unsigned int tid = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned int i = tid; i < num_elements; i += blockDim.x * gridDim.x) atomicAdd(&bins_s[input[i]], 1);
  __syncthreads();
  for (unsigned int binIdx = threadIdx.x; binIdx < num_bins; binIdx += blockDim.x)
    atomicAdd(&bins[binIdx], bins_s[binIdx]);
}

__global__ void saturate_kernel(unsigned int *bins, unsigned int num_bins) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < num_bins && bins[i] > 127) bins[i] = 127;
}

int main(int argc, char *argv[]) {
  wbArg_t args;
  int inputLength;
  unsigned int *hostInput, *hostBins, *deviceInput, *deviceBins;

  args = wbArg_read(argc, argv);
  wbTime_start(Generic, "Importing data and creating memory on host");
  hostInput = (unsigned int *)wbImport(wbArg_getInputFile(args, 0), &inputLength, "Integer");
  hostBins = (unsigned int *)malloc(NUM_BINS * sizeof(unsigned int));
  wbTime_stop(Generic, "Importing data and creating memory on host");
  wbLog(TRACE, "The input length is ", inputLength);
  wbLog(TRACE, "The number of bins is ", NUM_BINS);

  CUDA_CHECK(cudaMalloc((void **)&deviceInput, inputLength * sizeof(unsigned int)));
  CUDA_CHECK(cudaMalloc((void **)&deviceBins, NUM_BINS * sizeof(unsigned int)));
  CUDA_CHECK(cudaMemcpy(deviceInput, hostInput, inputLength * sizeof(unsigned int), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(deviceBins, 0, NUM_BINS * sizeof(unsigned int)));
  histogram_kernel<<<30, 512, NUM_BINS * sizeof(unsigned int)>>>(deviceInput, deviceBins, inputLength, NUM_BINS);
  saturate_kernel<<<(NUM_BINS + 511) / 512, 512>>>(deviceBins, NUM_BINS);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(hostBins, deviceBins, NUM_BINS * sizeof(unsigned int), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(deviceInput));
  CUDA_CHECK(cudaFree(deviceBins));
  wbSolution(args, hostBins, NUM_BINS);
  free(hostBins);
  free(hostInput);
  return 0;
}
