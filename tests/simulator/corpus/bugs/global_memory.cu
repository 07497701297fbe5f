// Kernels that leave their arrays, or read them in pieces that are not aligned.
#include "../corpus.h"

// --- saxpy_off_by_one: the guard lets one thread too many through
__global__ void saxpy(int n, float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) y[i] = a * x[i] + y[i];  // BUG memcheck global_oob
}
PROGRAM(saxpy_off_by_one) {
  const int n = 1000;
  const auto x = numbers(n), y = numbers(n);
  Array<float> dx(x), dy(y);
  saxpy<<<4, 256>>>(n, 2, dx, dy);
  auto expected = y;
  for (int i = 0; i < n; ++i) expected[i] += 2 * x[i];
  return close(dy.host(), expected);
}

// --- stencil_left_edge: the first thread reads its left neighbour, which does not exist
__global__ void blur(int n, const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float left = in[i - 1];  // BUG memcheck global_oob
  const float right = i + 1 < n ? in[i + 1] : 0;
  out[i] = left + 2 * in[i] + right;
}
PROGRAM(stencil_left_edge) {
  const int n = 512;
  Array<float> in(numbers(n)), out(n);
  blur<<<2, 256>>>(n, in, out);
  finish();
  return true;
}

// --- transpose_without_tail: a matrix that does not fill its tiles, and no guard
__global__ void transpose_tiles(int rows, int columns, const float* in, float* out) {
  __shared__ float tile[16][17];
  const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = in[y * columns + x];  // BUG memcheck global_oob
  __syncthreads();
  const int u = blockIdx.y * 16 + threadIdx.x, v = blockIdx.x * 16 + threadIdx.y;
  if (u < rows && v < columns) out[v * rows + u] = tile[threadIdx.x][threadIdx.y];
}
PROGRAM(transpose_without_tail) {
  const int rows = 40, columns = 40;
  Array<float> in(numbers(rows * columns)), out(rows * columns);
  transpose_tiles<<<dim3(3, 3), dim3(16, 16)>>>(rows, columns, in, out);
  finish();
  return true;
}

// --- histogram_top_bin: the largest value falls into a bin that is not there
__global__ void histogram(int n, const float* x, unsigned* bins, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int bin = static_cast<int>(x[i] / 15.0f * count);
  atomicAdd(&bins[bin], 1u);  // BUG memcheck global_oob
}
PROGRAM(histogram_top_bin) {
  const int n = 2048, count = 64;
  Array<float> x(numbers(n));
  Array<unsigned> bins(count);
  bins.zero();
  histogram<<<8, 256>>>(n, x, bins, count);
  finish();
  return true;
}

// --- rows_as_float4: rows of 1023 floats, read as float4
__global__ void row_sums(int columns, const float* in, float* sums) {
  const float4* row = reinterpret_cast<const float4*>(in + blockIdx.x * columns);
  float sum = 0;
  for (int i = threadIdx.x; i < columns / 4; i += 32) {
    const float4 v = row[i];  // BUG memcheck misaligned
    sum += v.x + v.y + v.z + v.w;
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
PROGRAM(rows_as_float4) {
  const int columns = 1023, rows = 4;
  Array<float> in(numbers(columns * rows)), sums(rows);
  row_sums<<<rows, 32>>>(columns, in, sums);
  finish();
  return true;
}

// --- packed_record: a double behind a 4-byte header
__global__ void unpack(int n, const char* records, double* values) {
  const int i = threadIdx.x;
  if (i < n) values[i] = *reinterpret_cast<const double*>(records + 12 * i + 4);  // BUG memcheck misaligned
}
PROGRAM(packed_record) {
  const int n = 64;
  Array<char> records(numbers<char>(12 * n));
  Array<double> values(n);
  unpack<<<1, 64>>>(n, records, values);
  finish();
  return true;
}
