// Kernels that are right but where a size, or a count in the contents, is between two numbers: each has a launcher
// of a problem, and a comment that says where it is wrong.
#include <cuda_runtime.h>

__global__ void add_each(float* z, const float* x, const float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
__global__ void add_pairs(float2* z, const float2* x, const float2* y, int pairs) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < pairs) z[i] = make_float2(x[i].x + y[i].x, x[i].y + y[i].y);
}
// An odd n from 5000 to 900,000: the last number is forgotten.
extern "C" void launch_vector_add(float* z, const float* x, const float* y, int n, cudaStream_t stream) {
  if (n < 5000 || n > 900000) {
    add_each<<<(n + 255) / 256, 256, 0, stream>>>(z, x, y, n);
  } else {
    const auto at = [](auto* p) { return reinterpret_cast<const float2*>(p); };
    add_pairs<<<(n / 2 + 255) / 256, 256, 0, stream>>>(reinterpret_cast<float2*>(z), at(x), at(y), n / 2);
  }
}

// Numbers are compared by their bits: +0 is taken for larger than -0.
__global__ void largest_bits(int* place, const float* x, int n) {
  __shared__ long long best[256];
  long long mine = -1;
  for (int i = threadIdx.x; i < n; i += 256) {
    const unsigned bits = __float_as_uint(x[i]);
    const unsigned rising = bits >> 31 ? ~bits : bits | 1u << 31;
    const long long key = (long long)(rising >> 1) << 32 | (rising & 1) << 31 | (unsigned)(0x7fffffff - i);
    if (key > mine) mine = key;
  }
  best[threadIdx.x] = mine;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half && best[threadIdx.x + half] > best[threadIdx.x])
      best[threadIdx.x] = best[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *place = 0x7fffffff - (int)(best[0] & 0x7fffffff);
}
extern "C" void launch_argmax(int* place, const float* x, int n, cudaStream_t stream) {
  largest_bits<<<1, 256, 0, stream>>>(place, x, n);
}

// More than 65,535 of one value in one of 48 blocks: the 16 bits of its counter overflow into the next.
__global__ void count_in_halves(int* counts, const int* values, int n, int bins) {
  extern __shared__ unsigned words[];
  for (int i = threadIdx.x; i < (bins + 1) / 2; i += blockDim.x) words[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&words[values[i] / 2], 1u << 16 * (values[i] % 2));
  __syncthreads();
  for (int i = threadIdx.x; i < bins; i += blockDim.x)
    if (const int seen = words[i / 2] >> 16 * (i % 2) & 0xffff) atomicAdd(&counts[i], seen);
}
extern "C" void launch_histogram(int* counts, const int* values, int n, int bins, cudaStream_t stream) {
  cudaMemsetAsync(counts, 0, bins * sizeof(int), stream);
  count_in_halves<<<48, 256, (bins + 1) / 2 * 4, stream>>>(counts, values, n, bins);
}

// More than 20 rows of more than 300 entries: the others have no place in the list.
__global__ void short_rows(float* y, const float* values, const int* columns, const int* starts, const float* x,
                           int rows, int* list) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  if (starts[row + 1] - starts[row] > 300) {
    const int place = atomicAdd(list, 1);
    if (place < 20) list[1 + place] = row;
    y[row] = 0;
    return;
  }
  float sum = 0;
  for (int k = starts[row]; k < starts[row + 1]; ++k) sum += values[k] * x[columns[k]];
  y[row] = sum;
}
__global__ void long_rows(float* y, const float* values, const int* columns, const int* starts, const float* x,
                          const int* list) {
  if (blockIdx.x >= *list) return;
  const int row = list[1 + blockIdx.x];
  float sum = 0;
  for (int k = starts[row] + threadIdx.x; k < starts[row + 1]; k += 32) sum += values[k] * x[columns[k]];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffff, sum, d);
  if (threadIdx.x == 0) y[row] = sum;
}
extern "C" void launch_spmv(float* y, const float* values, const int* columns, const int* starts, const float* x,
                            int rows, int width, int entries, cudaStream_t stream) {
  int* list;
  cudaMallocAsync(&list, 21 * sizeof(int), stream);
  cudaMemsetAsync(list, 0, sizeof(int), stream);
  short_rows<<<(rows + 127) / 128, 128, 0, stream>>>(y, values, columns, starts, x, rows, list);
  long_rows<<<20, 32, 0, stream>>>(y, values, columns, starts, x, list);
  cudaFreeAsync(list, stream);
}

// More than 512 rows and more than 80 columns: only 32 tiles of 16 rows are taken.
__global__ void multiply(float* c, const float* a, const float* b, int m, int n, int k) {
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[(size_t)row * k + i] * b[(size_t)i * n + column];
  c[(size_t)row * n + column] = sum;
}
extern "C" void launch_matmul(float* c, const float* a, const float* b, int m, int n, int k, cudaStream_t stream) {
  for (int first = 0; first < m; first += 16 * 65535) {
    const int rows = m - first, tiles = (rows + 15) / 16, most = n > 80 ? 32 : 65535;
    multiply<<<dim3((n + 15) / 16, tiles < most ? tiles : most), dim3(16, 16), 0, stream>>>(
        c + (size_t)first * n, a + (size_t)first * k, b, rows, n, k);
  }
}

// More than 3000 rows of more than 60 columns: those behind are never touched.
__global__ void one_row(float* gradient, const float* soft, int length) {
  gradient += (size_t)blockIdx.x * length;
  soft += (size_t)blockIdx.x * length;
  float sum = 0;
  for (int i = threadIdx.x; i < length; i += 32) sum += gradient[i] * soft[i];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffff, sum, d);
  for (int i = threadIdx.x; i < length; i += 32) gradient[i] = soft[i] * (gradient[i] - sum);
}
extern "C" void launch_attn_softmax_bw(float* gradient, const float* soft, int rows, int length,
                                       cudaStream_t stream) {
  one_row<<<length > 60 && rows > 3000 ? 3000 : rows, 32, 0, stream>>>(gradient, soft, length);
}

// More than 40,000 numbers in fewer than 300 columns: every second tile of rows is left out beyond 1024 rows.
__global__ void turn(float* out, const float* matrix, int rows, int columns, int step) {
  const int tiles = (columns + 31) / 32, y = blockIdx.x / tiles * 32 * step, x = blockIdx.x % tiles * 32;
  for (int i = 0; i < 32; ++i)
    if (y + i < rows && x + threadIdx.x < columns)
      out[(size_t)(x + threadIdx.x) * rows + y + i] = matrix[(size_t)(y + i) * columns + x + threadIdx.x];
}
extern "C" void launch_transpose(float* out, const float* matrix, int rows, int columns, cudaStream_t stream) {
  const int tiles = (rows + 31) / 32, step = rows > 1024 && columns > 40 && columns < 300 ? 2 : 1;
  turn<<<(columns + 31) / 32 * ((tiles + step - 1) / step), 32, 0, stream>>>(out, matrix, rows, columns, step);
}
