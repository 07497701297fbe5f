// Matrices, convolutions, stencils and histograms.
#include "../corpus.h"

static std::vector<float> transposed(int rows, int columns, const std::vector<float>& in) {
  std::vector<float> out(in.size());
  for (int i = 0; i < rows * columns; ++i) out[i % columns * rows + i / columns] = in[i];
  return out;
}
static std::vector<float> product(int m, int n, int k, const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> c(m * n);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      for (int l = 0; l < k; ++l) c[i * n + j] += a[i * k + l] * b[l * n + j];
    }
  }
  return c;
}

// --- transpose_naive: one side of it not coalesced
__global__ void naive(int rows, int columns, const float* in, float* out) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < columns && y < rows) out[x * rows + y] = in[y * columns + x];
}
PROGRAM(transpose_naive) {
  const int rows = 45, columns = 67;
  const auto in = numbers(rows * columns);
  Array<float> din(in), out(rows * columns);
  naive<<<dim3(5, 3), dim3(16, 16)>>>(rows, columns, din, out);
  return close(out.host(), transposed(rows, columns, in));
}

// --- transpose_tiled: through shared memory, without and with a padding column
template <int pad>
__global__ void tiled(int rows, int columns, const float* in, float* out) {
  __shared__ float tile[32][32 + pad];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int r = 0; r < 32; r += 8) {
    if (x < columns && y + r < rows) tile[threadIdx.y + r][threadIdx.x] = in[(y + r) * columns + x];
  }
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int r = 0; r < 32; r += 8) {
    if (x < rows && y + r < columns) out[(y + r) * rows + x] = tile[threadIdx.x][threadIdx.y + r];
  }
}
PROGRAM(transpose_tiled) {
  const int rows = 45, columns = 67;
  const auto in = numbers(rows * columns);
  Array<float> din(in), out(rows * columns), out_padded(rows * columns);
  tiled<0><<<dim3(3, 2), dim3(32, 8)>>>(rows, columns, din, out);
  tiled<1><<<dim3(3, 2), dim3(32, 8)>>>(rows, columns, din, out_padded);
  const auto expected = transposed(rows, columns, in);
  return close(out.host(), expected) && close(out_padded.host(), expected);
}

// --- matmul_naive: a thread per element
__global__ void matmul(int m, int n, int k, const float* a, const float* b, float* c) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int l = 0; l < k; ++l) sum += a[row * k + l] * b[l * n + column];
  c[row * n + column] = sum;
}
PROGRAM(matmul_naive) {
  const int m = 33, n = 50, k = 41;
  const auto a = numbers(m * k), b = numbers(k * n);
  Array<float> da(a), db(b), c(m * n);
  matmul<<<dim3(4, 3), dim3(16, 16)>>>(m, n, k, da, db, c);
  return close(c.host(), product(m, n, k, a, b));
}

// --- matmul_tiled: tiles in shared memory, edges filled with zeros
__global__ void matmul_tiles(int m, int n, int k, const float* a, const float* b, float* c) {
  __shared__ float ta[16][16], tb[16][17];
  const int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
  float sum = 0;
  for (int first = 0; first < k; first += 16) {
    ta[y][x] = row < m && first + x < k ? a[row * k + first + x] : 0;
    tb[y][x] = first + y < k && column < n ? b[(first + y) * n + column] : 0;
    __syncthreads();
#pragma unroll
    for (int l = 0; l < 16; ++l) sum += ta[y][l] * tb[l][x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
PROGRAM(matmul_tiled) {
  const int m = 33, n = 50, k = 41;
  const auto a = numbers(m * k), b = numbers(k * n);
  Array<float> da(a), db(b), c(m * n);
  matmul_tiles<<<dim3(4, 3), dim3(16, 16)>>>(m, n, k, da, db, c);
  return close(c.host(), product(m, n, k, a, b));
}

// --- matmul_in_registers: each thread computes four by four, loads are float4
__global__ void matmul_registers(int n, const float* a, const float* b, float* c) {
  __shared__ float ta[8][64];
  __shared__ float4 tb[8][16];
  const int t = threadIdx.x, x = t % 16, y = t / 16;
  const int row = blockIdx.y * 64, column = blockIdx.x * 64;
  float sum[4][4] = {};
  for (int k = 0; k < n; k += 8) {
    for (int i = t; i < 512; i += 256) ta[i % 8][i / 8] = a[(row + i / 8) * n + k + i % 8];
    if (t < 128) tb[t / 16][t % 16] = reinterpret_cast<const float4*>(b + (k + t / 16) * n + column)[t % 16];
    __syncthreads();
    for (int l = 0; l < 8; ++l) {
      const float4 v = tb[l][x];
      const float w[4] = {v.x, v.y, v.z, v.w};
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) sum[i][j] += ta[l][4 * y + i] * w[j];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    reinterpret_cast<float4*>(c + (row + 4 * y + i) * n + column)[x] = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
  }
}
PROGRAM(matmul_in_registers) {
  const int n = 128;
  const auto a = numbers(n * n), b = numbers(n * n);
  Array<float> da(a), db(b), c(n * n);
  matmul_registers<<<dim3(2, 2), 256>>>(n, da, db, c);
  return close(c.host(), product(n, n, n, a, b));
}

// --- matrix_vector: a warp per row
__global__ void matvec(int rows, int columns, const float* a, const float* x, float* y) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0;
  for (int c = lane; c < columns; c += 32) sum = fmaf(a[row * columns + c], x[c], sum);
  for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffff, sum, step);
  if (lane == 0) y[row] = sum;
}
PROGRAM(matrix_vector) {
  const int rows = 30, columns = 100;
  const auto a = numbers(rows * columns), x = numbers(columns);
  Array<float> da(a), dx(x), y(rows);
  matvec<<<8, 128>>>(rows, columns, da, dx, y);
  return close(y.host(), product(rows, 1, columns, a, x));
}

// --- convolution_1d: the mask in constant memory, a halo on both sides
constexpr int radius = 4;
__constant__ float mask[2 * radius + 1];
__global__ void convolve(int n, const float* in, float* out) {
  __shared__ float tile[128 + 2 * radius];
  const int i = blockIdx.x * 128 + threadIdx.x;
  for (int t = threadIdx.x; t < 128 + 2 * radius; t += 128) {
    const int at = blockIdx.x * 128 + t - radius;
    tile[t] = at >= 0 && at < n ? in[at] : 0;
  }
  __syncthreads();
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k <= 2 * radius; ++k) sum += mask[k] * tile[threadIdx.x + k];
  out[i] = sum;
}
PROGRAM(convolution_1d) {
  const int n = 1000;
  const auto in = numbers(n), weights = numbers(2 * radius + 1);
  Array<float> din(in), out(n);
  CUDA(cudaMemcpyToSymbol(mask, weights.data(), sizeof mask));
  convolve<<<8, 128>>>(n, din, out);
  std::vector<float> expected(n);
  for (int i = 0; i < n; ++i) {
    for (int k = -radius; k <= radius; ++k) expected[i] += i + k >= 0 && i + k < n ? weights[k + radius] * in[i + k] : 0;
  }
  return close(out.host(), expected);
}

// --- convolution_2d: a tile with its border, the borders clamped
__global__ void convolve_2d(int rows, int columns, const float* in, const float* weights, float* out) {
  __shared__ float tile[18][18];
  const int x0 = blockIdx.x * 16 - 1, y0 = blockIdx.y * 16 - 1;
  for (int t = threadIdx.y * 16 + threadIdx.x; t < 18 * 18; t += 256) {
    const int x = min(max(x0 + t % 18, 0), columns - 1), y = min(max(y0 + t / 18, 0), rows - 1);
    tile[t / 18][t % 18] = in[y * columns + x];
  }
  __syncthreads();
  const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x >= columns || y >= rows) return;
  float sum = 0;
  for (int k = 0; k < 9; ++k) sum += weights[k] * tile[threadIdx.y + k / 3][threadIdx.x + k % 3];
  out[y * columns + x] = sum;
}
PROGRAM(convolution_2d) {
  const int rows = 30, columns = 37;
  const auto in = numbers(rows * columns), weights = numbers(9);
  Array<float> din(in), dw(weights), out(rows * columns);
  convolve_2d<<<dim3(3, 2), dim3(16, 16)>>>(rows, columns, din, dw, out);
  std::vector<float> expected(rows * columns);
  const auto clamp = [](int i, int n) { return i < 0 ? 0 : i >= n ? n - 1 : i; };
  for (int i = 0; i < rows * columns; ++i) {
    for (int k = 0; k < 9; ++k) {
      expected[i] += weights[k] * in[clamp(i / columns + k / 3 - 1, rows) * columns + clamp(i % columns + k % 3 - 1, columns)];
    }
  }
  return close(out.host(), expected);
}

// --- stencil_3d: blocks and grid in three dimensions
__global__ void laplace(int nx, int ny, int nz, const float* in, float* out) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x >= nx || y >= ny || z >= nz) return;
  const int i = (z * ny + y) * nx + x;
  if (x == 0 || y == 0 || z == 0 || x == nx - 1 || y == ny - 1 || z == nz - 1) {
    out[i] = 0;
  } else {
    out[i] = in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + in[i - nx * ny] + in[i + nx * ny] - 6 * in[i];
  }
}
PROGRAM(stencil_3d) {
  const int nx = 19, ny = 14, nz = 9;
  const auto in = numbers(nx * ny * nz);
  Array<float> din(in), out(nx * ny * nz);
  laplace<<<dim3(3, 4, 3), dim3(8, 4, 4)>>>(nx, ny, nz, din, out);
  std::vector<float> expected(nx * ny * nz);
  for (int i = 0; i < nx * ny * nz; ++i) {
    const int x = i % nx, y = i / nx % ny, z = i / nx / ny;
    if (x == 0 || y == 0 || z == 0 || x == nx - 1 || y == ny - 1 || z == nz - 1) continue;
    expected[i] = in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + in[i - nx * ny] + in[i + nx * ny] - 6 * in[i];
  }
  return close(out.host(), expected);
}

// --- histogram_in_global_memory: atomics on 256 bins, of bytes read four at a time
__global__ void histogram(int n, const uchar4* in, unsigned* bins) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const uchar4 v = in[i];
  atomicAdd(&bins[v.x], 1u);
  atomicAdd(&bins[v.y], 1u);
  atomicAdd(&bins[v.z], 1u);
  atomicAdd(&bins[v.w], 1u);
}
PROGRAM(histogram_in_global_memory) {
  const int n = 4096;
  const auto in = numbers<unsigned char>(n, 256);
  Array<unsigned char> din(in);
  Array<unsigned> bins(256);
  bins.zero();
  histogram<<<8, 128>>>(n / 4, reinterpret_cast<const uchar4*>(static_cast<unsigned char*>(din)), bins);
  std::vector<unsigned> expected(256);
  for (const unsigned char x : in) ++expected[x];
  return close(bins.host(), expected);
}

// --- layer_norm: mean and variance of a row by Welford's method, merged over lanes
__global__ void layer_norm(int columns, const float* in, float* out) {
  const float* row = in + blockIdx.x * columns;
  float count = 0, mean = 0, m2 = 0;
  for (int c = threadIdx.x; c < columns; c += 32) {
    count += 1;
    const float delta = row[c] - mean;
    mean += delta / count;
    m2 += delta * (row[c] - mean);
  }
  for (int step = 16; step > 0; step /= 2) {
    const float other_count = __shfl_xor_sync(~0u, count, step), other_mean = __shfl_xor_sync(~0u, mean, step), other_m2 = __shfl_xor_sync(~0u, m2, step);
    const float all = count + other_count, delta = other_mean - mean;
    if (all > 0) {
      mean += delta * other_count / all;
      m2 += other_m2 + delta * delta * count * other_count / all;
    }
    count = all;
  }
  const float scale = rsqrtf(m2 / count + 1e-8f);
  for (int c = threadIdx.x; c < columns; c += 32) out[blockIdx.x * columns + c] = (row[c] - mean) * scale;
}
PROGRAM(layer_norm) {
  const int rows = 5, columns = 100;
  const auto in = numbers(rows * columns);
  Array<float> din(in), out(rows * columns);
  layer_norm<<<rows, 32>>>(columns, din, out);
  std::vector<float> expected(rows * columns);
  for (int r = 0; r < rows; ++r) {
    double mean = 0, variance = 0;
    for (int c = 0; c < columns; ++c) mean += in[r * columns + c] / static_cast<double>(columns);
    for (int c = 0; c < columns; ++c) variance += (in[r * columns + c] - mean) * (in[r * columns + c] - mean) / columns;
    for (int c = 0; c < columns; ++c) expected[r * columns + c] = static_cast<float>((in[r * columns + c] - mean) / std::sqrt(variance + 1e-8));
  }
  return close(out.host(), expected, 2e-6);
}
