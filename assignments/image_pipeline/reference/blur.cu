// Box blur of a colour image: blur IN.ppm OUT.ppm RADIUS. One thread for each pixel, which adds up its window.
#include "pnm.h"

__global__ void blur(const unsigned char* in, unsigned char* out, int width, int height, int radius) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  int sum[3] = {0, 0, 0};
  for (int dy = -radius; dy <= radius; ++dy) {
    for (int dx = -radius; dx <= radius; ++dx) {
      int column = min(max(x + dx, 0), width - 1);
      int row = min(max(y + dy, 0), height - 1);
      const unsigned char* pixel = in + 3 * (row * width + column);
      for (int channel = 0; channel < 3; ++channel) sum[channel] += pixel[channel];
    }
  }
  int count = (2 * radius + 1) * (2 * radius + 1);
  for (int channel = 0; channel < 3; ++channel) {
    out[3 * (y * width + x) + channel] = (sum[channel] + count / 2) / count;
  }
}

int main(int count, char** words) {
  if (count != 4) fail("usage: blur IN.ppm OUT.ppm RADIUS, not", words[0]);
  Image image = read_image(words[1]);
  int radius = std::atoi(words[3]);

  unsigned char *in, *out;
  CHECK(cudaMalloc(&in, image.size()));
  CHECK(cudaMalloc(&out, image.size()));
  CHECK(cudaMemcpy(in, image.pixels.data(), image.size(), cudaMemcpyHostToDevice));
  dim3 block(16, 16);
  dim3 grid((image.width + 15) / 16, (image.height + 15) / 16);
  blur<<<grid, block>>>(in, out, image.width, image.height, radius);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(image.pixels.data(), out, image.size(), cudaMemcpyDeviceToHost));
  write_image(words[2], image);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}
