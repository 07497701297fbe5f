// 2-D convolution. Filters that are a column times a row (box, Gauss) take 2 (2 radius + 1) products per pixel.
#include <cuda_runtime.h>

constexpr int WIDE = 32, TALL = 8, MOST = 3;

__global__ void ker_convolution(float* out, const float* image, const float* weights, int rows, int columns,
                                int radius) {
  __shared__ float tile[TALL + 2 * MOST][WIDE + 2 * MOST];
  __shared__ float across[TALL + 2 * MOST][WIDE];
  __shared__ float w[49], column_of[7], row_of[7];
  __shared__ bool product;
  const int size = 2 * radius + 1, t = threadIdx.y * WIDE + threadIdx.x;
  const int row0 = blockIdx.y * TALL - radius, column0 = blockIdx.x * WIDE - radius;
  if (t < size * size) w[t] = weights[t];
  for (int i = t; i < (TALL + 2 * radius) * (WIDE + 2 * radius); i += WIDE * TALL) {
    const int y = i / (WIDE + 2 * radius), x = i % (WIDE + 2 * radius), r = row0 + y, c = column0 + x;
    tile[y][x] = r >= 0 && c >= 0 && r < rows && c < columns ? image[static_cast<long long>(r) * columns + c] : 0.0f;
  }
  __syncthreads();
  if (t == 0) {
    int pivot = 0;
    for (int i = 1; i < size * size; ++i)
      if (fabsf(w[i]) > fabsf(w[pivot])) pivot = i;
    const float largest = w[pivot];
    bool works = largest != 0;
    for (int i = 0; i < size && works; ++i) {
      column_of[i] = w[i * size + pivot % size];
      row_of[i] = w[pivot / size * size + i] / largest;
    }
    for (int i = 0; i < size * size && works; ++i)
      works = fabsf(w[i] - column_of[i / size] * row_of[i % size]) * 512 <= fabsf(w[i]);
    product = works;
  }
  __syncthreads();
  float sum = 0;
  if (product) {
    for (int y = threadIdx.y; y < TALL + 2 * radius; y += TALL) {
      float part = 0;
      for (int j = 0; j < size; ++j) part += row_of[j] * tile[y][threadIdx.x + j];
      across[y][threadIdx.x] = part;
    }
    __syncthreads();
    for (int i = 0; i < size; ++i) sum += column_of[i] * across[threadIdx.y + i][threadIdx.x];
  } else {
    for (int i = 0; i < size; ++i)
      for (int j = 0; j < size; ++j) sum += w[i * size + j] * tile[threadIdx.y + i][threadIdx.x + j];
  }
  const int r = blockIdx.y * TALL + threadIdx.y, c = blockIdx.x * WIDE + threadIdx.x;
  if (r < rows && c < columns) out[static_cast<long long>(r) * columns + c] = sum;
}

extern "C" void launch_convolution(float* out, const float* image, const float* weights, int rows, int columns,
                                   int radius, cudaStream_t stream) {
  const dim3 grid((columns + WIDE - 1) / WIDE, (rows + TALL - 1) / TALL);
  ker_convolution<<<grid, dim3(WIDE, TALL), 0, stream>>>(out, image, weights, rows, columns, radius);
}
