// Every thread reads its neighbours from global memory, in a loop over all pixels.
#include "pnm.h"

__device__ int at(const unsigned char* in, int x, int y, int width, int height) {
  return in[min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1)];
}

__global__ void sobel(const unsigned char* in, unsigned char* out, int width, int height) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < width * height; i += gridDim.x * blockDim.x) {
    int x = i % width, y = i / width, gx = 0, gy = 0;
    for (int d = -1; d <= 1; ++d) {
      int weight = d == 0 ? 2 : 1;
      gx += weight * (at(in, x + 1, y + d, width, height) - at(in, x - 1, y + d, width, height));
      gy += weight * (at(in, x + d, y + 1, width, height) - at(in, x + d, y - 1, width, height));
    }
    int strength = abs(gx) + abs(gy);
    out[i] = strength > 255 ? 255 : strength;
  }
}

int main(int, char** words) {
  Image image = read_image(words[1]);
  unsigned char *in, *out;
  CHECK(cudaMalloc(&in, image.size()));
  CHECK(cudaMalloc(&out, image.size()));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMemcpyAsync(in, image.pixels.data(), image.size(), cudaMemcpyHostToDevice, stream));
  sobel<<<64, 192, 0, stream>>>(in, out, image.width, image.height);
  CHECK(cudaMemcpyAsync(image.pixels.data(), out, image.size(), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  write_image(words[2], image);
}
