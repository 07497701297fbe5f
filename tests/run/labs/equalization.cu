#include <wb.h>

#define HISTOGRAM_LENGTH 256

__global__ void toChars(float *in, unsigned char *out, int size) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) out[i] = (unsigned char)(255 * in[i] + 0.5f);
}

__global__ void count(unsigned char *gray, unsigned int *histogram, int size) {
  __shared__ unsigned int local[HISTOGRAM_LENGTH];
  local[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) atomicAdd(&local[gray[i]], 1);
  __syncthreads();
  atomicAdd(&histogram[threadIdx.x], local[threadIdx.x]);
}

__global__ void cumulate(unsigned int *histogram, float *cdf, int size) {
  __shared__ float T[HISTOGRAM_LENGTH];
  T[threadIdx.x] = histogram[threadIdx.x];
  for (int stride = 1; stride < HISTOGRAM_LENGTH; stride *= 2) {
    __syncthreads();
    float other = threadIdx.x >= stride ? T[threadIdx.x - stride] : 0;
    __syncthreads();
    T[threadIdx.x] += other;
  }
  cdf[threadIdx.x] = T[threadIdx.x] / size;
}

__global__ void correct(unsigned char *gray, float *cdf, float *out, int size) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= size) return;
  float least = cdf[0];
  for (int v = 1; least == 0 && v < HISTOGRAM_LENGTH; ++v) least = cdf[v];
  float value = 255 * (cdf[gray[i]] - least) / (1.0f - least);
  out[i] = min(max(value, 0.0f), 255.0f) / 255.0f;
}

int main(int argc, char **argv) {
  wbArg_t args = wbArg_read(argc, argv);
  wbImage_t inputImage = wbImport(wbArg_getInputFile(args, 0));
  int imageWidth = wbImage_getWidth(inputImage), imageHeight = wbImage_getHeight(inputImage);
  int size = imageWidth * imageHeight * wbImage_getChannels(inputImage);
  wbImage_t outputImage = wbImage_new(imageWidth, imageHeight, wbImage_getChannels(inputImage));
  float *image, *cdf;
  unsigned char *gray;
  unsigned int *histogram;
  cudaMalloc(&image, size * sizeof(float));
  cudaMalloc(&gray, size);
  cudaMalloc(&histogram, HISTOGRAM_LENGTH * sizeof(unsigned int));
  cudaMalloc(&cdf, HISTOGRAM_LENGTH * sizeof(float));
  cudaMemset(histogram, 0, HISTOGRAM_LENGTH * sizeof(unsigned int));
  cudaMemcpy(image, wbImage_getData(inputImage), size * sizeof(float), cudaMemcpyHostToDevice);
  int blocks = (size + HISTOGRAM_LENGTH - 1) / HISTOGRAM_LENGTH;
  toChars<<<blocks, HISTOGRAM_LENGTH>>>(image, gray, size);
  count<<<blocks, HISTOGRAM_LENGTH>>>(gray, histogram, size);
  cumulate<<<1, HISTOGRAM_LENGTH>>>(histogram, cdf, size);
  correct<<<blocks, HISTOGRAM_LENGTH>>>(gray, cdf, image, size);
  cudaMemcpy(wbImage_getData(outputImage), image, size * sizeof(float), cudaMemcpyDeviceToHost);
  wbSolution(args, outputImage);
  cudaFree(image);
  cudaFree(gray);
  cudaFree(histogram);
  cudaFree(cdf);
  return 0;
}
