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

// --- table_of_the_device: an index leaves a __device__ array
__device__ float slopes[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
__global__ void by_table(int n, const int* in, float* out) {
  const int i = threadIdx.x;
  if (i < n) out[i] = slopes[in[i] * 5000];  // BUG memcheck global_oob
}
PROGRAM(table_of_the_device) {
  Array<int> in(numbers<int>(64));
  Array<float> out(64);
  by_table<<<1, 64>>>(64, in, out);
  finish();
  return true;
}

// --- unsigned_underflow: i - 1 of an unsigned zero
__global__ void differences(unsigned n, const float* in, float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] - in[i - 1];  // BUG memcheck global_oob
}
PROGRAM(unsigned_underflow) {
  Array<float> in(numbers(256)), out(256);
  differences<<<1, 256>>>(256, in, out);
  finish();
  return true;
}

// --- null_output: an output that the caller left null
__global__ void mean_and_deviation(int n, const float* in, float* mean, float* deviation) {
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < n; i += 32) {
    sum += in[i];
    squares += in[i] * in[i];
  }
  for (int step = 16; step > 0; step /= 2) {
    sum += __shfl_down_sync(~0u, sum, step);
    squares += __shfl_down_sync(~0u, squares, step);
  }
  if (threadIdx.x > 0) return;
  *mean = sum / n;
  *deviation = sqrtf(squares / n - sum / n * sum / n);  // BUG memcheck global_oob
}
PROGRAM(null_output) {
  Array<float> in(numbers(256)), mean(1);
  mean_and_deviation<<<1, 32>>>(256, in, mean, nullptr);
  finish();
  return true;
}

// --- shared_rows_as_float4: rows of 33 floats in shared memory, read as float4
__global__ void sums_of_rows(const float* in, float* out) {
  __shared__ __align__(16) float tile[4][33];
  for (int r = 0; r < 4; ++r) tile[r][threadIdx.x] = in[r * 32 + threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 32) {
    const float4 v = reinterpret_cast<const float4*>(tile[threadIdx.x / 8])[threadIdx.x % 8];  // BUG memcheck misaligned
    out[threadIdx.x] = v.x + v.y + v.z + v.w;
  }
}
PROGRAM(shared_rows_as_float4) {
  Array<float> in(numbers(128)), out(32);
  sums_of_rows<<<1, 32>>>(in, out);
  finish();
  return true;
}

// --- constant_table: an index leaves a __constant__ array
__constant__ float weights[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__global__ void weigh(const int* in, float* out) {
  out[threadIdx.x] = weights[in[threadIdx.x] * 5000];  // BUG memcheck global_oob
}
PROGRAM(constant_table) {
  Array<int> in(numbers<int>(32));
  Array<float> out(32);
  weigh<<<1, 32>>>(in, out);
  finish();
  return true;
}
