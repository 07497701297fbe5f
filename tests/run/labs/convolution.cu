#include <wb.h>

#define Mask_width 5
#define Mask_radius Mask_width / 2
#define TILE_WIDTH 12
#define w (TILE_WIDTH + Mask_width - 1)
#define clamp(x) (min(max((x), 0.0), 1.0))

__global__ void convolution(float *I, const float *__restrict__ M, float *P, int channels, int width, int height) {
  __shared__ float N_ds[w][w];
  int row_o = blockIdx.y * TILE_WIDTH + threadIdx.y, col_o = blockIdx.x * TILE_WIDTH + threadIdx.x;
  int row_i = row_o - Mask_radius, col_i = col_o - Mask_radius;
  for (int k = 0; k < channels; k++) {
    if (row_i >= 0 && row_i < height && col_i >= 0 && col_i < width)
      N_ds[threadIdx.y][threadIdx.x] = I[(row_i * width + col_i) * channels + k];
    else
      N_ds[threadIdx.y][threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.y < TILE_WIDTH && threadIdx.x < TILE_WIDTH && row_o < height && col_o < width) {
      float accum = 0;
      for (int y = 0; y < Mask_width; y++)
        for (int x = 0; x < Mask_width; x++)
          accum += N_ds[threadIdx.y + y][threadIdx.x + x] * M[y * Mask_width + x];
      P[(row_o * width + col_o) * channels + k] = clamp(accum);
    }
    __syncthreads();
  }
}

int main(int argc, char *argv[]) {
  wbArg_t arg;
  int maskRows, maskColumns;
  float *hostMaskData, *deviceInputImageData, *deviceOutputImageData, *deviceMaskData;

  arg = wbArg_read(argc, argv);
  wbImage_t inputImage = wbImport(wbArg_getInputFile(arg, 0));
  hostMaskData = (float *)wbImport(wbArg_getInputFile(arg, 1), &maskRows, &maskColumns);
  wbAssert(maskRows == 5);
  wbAssert(maskColumns == 5);

  int imageWidth = wbImage_getWidth(inputImage), imageHeight = wbImage_getHeight(inputImage);
  int imageChannels = wbImage_getChannels(inputImage);
  wbImage_t outputImage = wbImage_new(imageWidth, imageHeight, imageChannels);
  float *hostInputImageData = wbImage_getData(inputImage), *hostOutputImageData = wbImage_getData(outputImage);
  size_t size = imageWidth * imageHeight * imageChannels * sizeof(float);

  cudaMalloc((void **)&deviceInputImageData, size);
  cudaMalloc((void **)&deviceOutputImageData, size);
  cudaMalloc((void **)&deviceMaskData, maskRows * maskColumns * sizeof(float));
  cudaMemcpy(deviceInputImageData, hostInputImageData, size, cudaMemcpyHostToDevice);
  cudaMemcpy(deviceMaskData, hostMaskData, maskRows * maskColumns * sizeof(float), cudaMemcpyHostToDevice);

  dim3 dimGrid((imageWidth - 1) / TILE_WIDTH + 1, (imageHeight - 1) / TILE_WIDTH + 1);
  dim3 dimBlock(w, w);
  convolution<<<dimGrid, dimBlock>>>(deviceInputImageData, deviceMaskData, deviceOutputImageData, imageChannels,
                                     imageWidth, imageHeight);
  cudaMemcpy(hostOutputImageData, deviceOutputImageData, size, cudaMemcpyDeviceToHost);

  wbSolution(arg, outputImage);
  cudaFree(deviceInputImageData);
  cudaFree(deviceOutputImageData);
  cudaFree(deviceMaskData);
  free(hostMaskData);
  wbImage_delete(outputImage);
  wbImage_delete(inputImage);
  return 0;
}
