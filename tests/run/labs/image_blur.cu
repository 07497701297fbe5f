#include <wb.h>

#define BLUR_SIZE 3

__global__ void blurKernel(float *out, float *in, int width, int height, int channels) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (col < width && row < height) {
    for (int channel = 0; channel < channels; ++channel) {
      float sum = 0;
      int pixels = 0;
      for (int blurRow = -BLUR_SIZE; blurRow <= BLUR_SIZE; ++blurRow) {
        for (int blurCol = -BLUR_SIZE; blurCol <= BLUR_SIZE; ++blurCol) {
          int curRow = row + blurRow, curCol = col + blurCol;
          if (curRow > -1 && curRow < height && curCol > -1 && curCol < width) {
            sum += in[(curRow * width + curCol) * channels + channel];
            pixels++;
          }
        }
      }
      out[(row * width + col) * channels + channel] = sum / pixels;
    }
  }
}

int main(int argc, char *argv[]) {
  wbArg_t args = wbArg_read(argc, argv);
  wbImage_t inputImage = wbImport(wbArg_getInputFile(args, 0));
  int width = wbImage_getWidth(inputImage), height = wbImage_getHeight(inputImage);
  int channels = wbImage_getChannels(inputImage);
  size_t bytes = width * height * channels * sizeof(float);
  wbImage_t outputImage = wbImage_new(width, height, channels);
  float *deviceInput, *deviceOutput;
  cudaMalloc((void **)&deviceInput, bytes);
  cudaMalloc((void **)&deviceOutput, bytes);
  cudaMemcpy(deviceInput, wbImage_getData(inputImage), bytes, cudaMemcpyHostToDevice);
  dim3 dimBlock(16, 16, 1);
  dim3 dimGrid((width - 1) / 16 + 1, (height - 1) / 16 + 1, 1);
  blurKernel<<<dimGrid, dimBlock>>>(deviceOutput, deviceInput, width, height, channels);
  cudaMemcpy(wbImage_getData(outputImage), deviceOutput, bytes, cudaMemcpyDeviceToHost);
  cudaFree(deviceInput);
  cudaFree(deviceOutput);
  wbSolution(args, outputImage);
  wbImage_delete(outputImage);
  wbImage_delete(inputImage);
  return 0;
}
