// Edges of a grey image: sobel IN.pgm OUT.pgm. Each block keeps its pixels, and those around them, in shared memory.
#include "pnm.h"

constexpr int TILE = 16;

__global__ void sobel(const unsigned char* in, unsigned char* out, int width, int height) {
  __shared__ int tile[TILE + 2][TILE + 2];
  int left = blockIdx.x * TILE - 1, top = blockIdx.y * TILE - 1;
  for (int place = threadIdx.y * TILE + threadIdx.x; place < (TILE + 2) * (TILE + 2); place += TILE * TILE) {
    int column = min(max(left + place % (TILE + 2), 0), width - 1);
    int row = min(max(top + place / (TILE + 2), 0), height - 1);
    tile[place / (TILE + 2)][place % (TILE + 2)] = in[row * width + column];
  }
  __syncthreads();

  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  if (x >= width || y >= height) return;
  int i = threadIdx.y + 1, j = threadIdx.x + 1;
  int gx = tile[i - 1][j + 1] + 2 * tile[i][j + 1] + tile[i + 1][j + 1] - tile[i - 1][j - 1] - 2 * tile[i][j - 1] -
           tile[i + 1][j - 1];
  int gy = tile[i + 1][j - 1] + 2 * tile[i + 1][j] + tile[i + 1][j + 1] - tile[i - 1][j - 1] - 2 * tile[i - 1][j] -
           tile[i - 1][j + 1];
  out[y * width + x] = min(abs(gx) + abs(gy), 255);
}

int main(int count, char** words) {
  if (count != 3) fail("usage: sobel IN.pgm OUT.pgm, not", words[0]);
  Image image = read_image(words[1]);

  unsigned char *in, *out;
  CHECK(cudaMalloc(&in, image.size()));
  CHECK(cudaMalloc(&out, image.size()));
  CHECK(cudaMemcpy(in, image.pixels.data(), image.size(), cudaMemcpyHostToDevice));
  dim3 block(TILE, TILE);
  dim3 grid((image.width + TILE - 1) / TILE, (image.height + TILE - 1) / TILE);
  sobel<<<grid, block>>>(in, out, image.width, image.height);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(image.pixels.data(), out, image.size(), cudaMemcpyDeviceToHost));
  write_image(words[2], image);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}
