// The sum along the row first, then down the column.
#include "pnm.h"

__global__ void along_rows(const unsigned char* in, int* sums, int width, int height, int radius) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= width * height * 3) return;
  int channel = i % 3, x = i / 3 % width, y = i / 3 / width;
  int sum = 0;
  for (int dx = -radius; dx <= radius; ++dx) sum += in[3 * (y * width + min(max(x + dx, 0), width - 1)) + channel];
  sums[i] = sum;
}

__global__ void down_columns(const int* sums, unsigned char* out, int width, int height, int radius) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= width * height * 3) return;
  int y = i / 3 / width, n = (2 * radius + 1) * (2 * radius + 1);
  int sum = n / 2;
  for (int dy = -radius; dy <= radius; ++dy) sum += sums[i + 3 * width * (min(max(y + dy, 0), height - 1) - y)];
  out[i] = sum / n;
}

int main(int, char** words) {
  Image image = read_image(words[1]);
  int radius = std::atoi(words[3]), size = image.size(), blocks = (size + 127) / 128;
  unsigned char* pixels;
  int* sums;
  CHECK(cudaMallocManaged(&pixels, size));
  CHECK(cudaMalloc(&sums, size * sizeof(int)));
  for (int i = 0; i < size; ++i) pixels[i] = image.pixels[i];
  along_rows<<<blocks, 128>>>(pixels, sums, image.width, image.height, radius);
  down_columns<<<blocks, 128>>>(sums, pixels, image.width, image.height, radius);
  CHECK(cudaDeviceSynchronize());
  image.pixels.assign(pixels, pixels + size);
  write_image(words[2], image);
  std::printf("blurred %d x %d pixels\n", image.width, image.height);
}
