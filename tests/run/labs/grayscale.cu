#include <wb.h>

#define TILE_WIDTH 16

__global__ void rgb2gray(float *grayImage, float *rgbImage, int channels, int width, int height) {
  int x = threadIdx.x + blockIdx.x * blockDim.x;
  int y = threadIdx.y + blockIdx.y * blockDim.y;
  if (x < width && y < height) {
    int grayOffset = y * width + x;
    int rgbOffset = grayOffset * channels;
    float r = rgbImage[rgbOffset], g = rgbImage[rgbOffset + 1], b = rgbImage[rgbOffset + 2];
    grayImage[grayOffset] = 0.21f * r + 0.71f * g + 0.07f * b;
  }
}

int main(int argc, char *argv[]) {
  wbArg_t args = wbArg_read(argc, argv);
  char *inputImageFile = wbArg_getInputFile(args, 0);
  wbImage_t inputImage = wbImport(inputImageFile);
  int imageWidth = wbImage_getWidth(inputImage);
  int imageHeight = wbImage_getHeight(inputImage);
  int imageChannels = wbImage_getChannels(inputImage);
  wbImage_t outputImage = wbImage_new(imageWidth, imageHeight, 1);
  float *deviceInputImageData, *deviceOutputImageData;

  wbTime_start(GPU, "Doing GPU Computation (memory + compute)");
  cudaMalloc((void **)&deviceInputImageData, imageWidth * imageHeight * imageChannels * sizeof(float));
  cudaMalloc((void **)&deviceOutputImageData, imageWidth * imageHeight * sizeof(float));
  cudaMemcpy(deviceInputImageData, wbImage_getData(inputImage),
             imageWidth * imageHeight * imageChannels * sizeof(float), cudaMemcpyHostToDevice);
  dim3 dimGrid(ceil((float)imageWidth / TILE_WIDTH), ceil((float)imageHeight / TILE_WIDTH));
  dim3 dimBlock(TILE_WIDTH, TILE_WIDTH, 1);
  rgb2gray<<<dimGrid, dimBlock>>>(deviceOutputImageData, deviceInputImageData, imageChannels, imageWidth, imageHeight);
  cudaMemcpy(wbImage_getData(outputImage), deviceOutputImageData, imageWidth * imageHeight * sizeof(float),
             cudaMemcpyDeviceToHost);
  wbTime_stop(GPU, "Doing GPU Computation (memory + compute)");
  wbSolution(args, outputImage);
  wbImage_delete(outputImage);
  wbImage_delete(inputImage);
  return 0;
}
