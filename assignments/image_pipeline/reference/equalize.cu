// Histogram equalisation of a grey image: equalize IN.pgm OUT.pgm. Three kernels: count, add up, look up.
#include "pnm.h"

constexpr int VALUES = 256;

__global__ void count_values(const unsigned char* in, int size, int* histogram) {
  __shared__ int mine[VALUES];
  mine[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * VALUES + threadIdx.x; i < size; i += gridDim.x * VALUES) {
    atomicAdd(&mine[in[i]], 1);
  }
  __syncthreads();
  atomicAdd(&histogram[threadIdx.x], mine[threadIdx.x]);
}

// In one block: how many pixels are at most as bright as each value, and what the value becomes.
__global__ void make_table(const int* histogram, int size, unsigned char* table) {
  __shared__ int below[VALUES];
  __shared__ int least;
  int value = threadIdx.x;
  below[value] = histogram[value];
  if (value == 0) least = size;
  __syncthreads();
  for (int step = 1; step < VALUES; step *= 2) {
    int sum = below[value] + (value >= step ? below[value - step] : 0);
    __syncthreads();
    below[value] = sum;
    __syncthreads();
  }
  if (below[value] > 0) atomicMin(&least, below[value]);
  __syncthreads();
  int rest = size - least;
  if (below[value] > 0) table[value] = rest ? ((below[value] - least) * 255 + rest / 2) / rest : 0;
}

__global__ void look_up(unsigned char* pixels, int size, const unsigned char* table) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) pixels[i] = table[pixels[i]];
}

int main(int count, char** words) {
  if (count != 3) fail("usage: equalize IN.pgm OUT.pgm, not", words[0]);
  Image image = read_image(words[1]);

  unsigned char *pixels, *table;
  int* histogram;
  CHECK(cudaMalloc(&pixels, image.size()));
  CHECK(cudaMalloc(&table, VALUES));
  CHECK(cudaMalloc(&histogram, VALUES * sizeof(int)));
  CHECK(cudaMemcpy(pixels, image.pixels.data(), image.size(), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(histogram, 0, VALUES * sizeof(int)));
  int blocks = (image.size() + VALUES - 1) / VALUES;
  count_values<<<min(blocks, 32), VALUES>>>(pixels, image.size(), histogram);
  make_table<<<1, VALUES>>>(histogram, image.size(), table);
  look_up<<<blocks, VALUES>>>(pixels, image.size(), table);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(image.pixels.data(), pixels, image.size(), cudaMemcpyDeviceToHost));
  write_image(words[2], image);
  CHECK(cudaFree(pixels));
  CHECK(cudaFree(table));
  CHECK(cudaFree(histogram));
}
