#include <cuda_runtime.h>

const int TX = 16, TY = 8;

__global__ void conv(float* out, const float* image, const float* weights, int rows, int columns, int radius) {
  extern __shared__ float pix[];
  const int w = TX + 2 * radius, h = TY + 2 * radius;
  const int x0 = blockIdx.x * TX - radius, y0 = blockIdx.y * TY - radius;
  for (int k = threadIdx.y * TX + threadIdx.x; k < w * h; k += TX * TY) {
    const int yy = y0 + k / w, xx = x0 + k % w;
    const bool in = yy >= 0 && yy < rows && xx >= 0 && xx < columns;
    pix[k] = in ? image[(size_t)yy * columns + xx] : 0.0f;
  }
  __syncthreads();
  const int x = blockIdx.x * TX + threadIdx.x, y = blockIdx.y * TY + threadIdx.y;
  if (x < columns && y < rows) {
    float s = 0.0f;
    for (int i = 0; i <= 2 * radius; ++i)
      for (int j = 0; j <= 2 * radius; ++j)
        s += weights[i * (2 * radius + 1) + j] * pix[(threadIdx.y + i) * w + threadIdx.x + j];
    out[(size_t)y * columns + x] = s;
  }
}

extern "C" void launch_convolution(float* out, const float* image, const float* weights, int rows, int columns,
                                   int radius, cudaStream_t stream) {
  dim3 grid((columns + TX - 1) / TX, (rows + TY - 1) / TY);
  size_t bytes = (TX + 2 * radius) * (TY + 2 * radius) * sizeof(float);
  conv<<<grid, dim3(TX, TY), bytes, stream>>>(out, image, weights, rows, columns, radius);
}
