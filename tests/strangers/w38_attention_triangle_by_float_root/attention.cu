// Pass 1: maxima of rows by pairs of tiles; pass 2: sums and weighted values, added by atomics; pass 3: quotient.
#include <cuda_runtime.h>
constexpr int DEPTH = 64, SIDE = 8;

__device__ void pair(int b, int& row, int& column) {
  row = (int)((sqrtf(8.0f * b + 1.0f) - 1.0f) * 0.5f);
  column = b - (int)((long long)row * (row + 1) / 2);
}
__device__ unsigned ordered(float v) {
  const unsigned u = __float_as_uint(v);
  return u & 0x80000000u ? ~u : u | 0x80000000u;
}
__device__ float number(unsigned u) { return __uint_as_float(u & 0x80000000u ? u & 0x7fffffffu : ~u); }

__device__ float logit(const float* q, const float* k, int i, int j) {
  float s = 0;
  for (int d = 0; d < DEPTH; ++d) s += q[(size_t)i * DEPTH + d] * k[(size_t)j * DEPTH + d];
  return s * 0.125f;
}
__global__ void ker_maxima(unsigned* maxima, const float* q, const float* k, int n) {
  int r, c;
  pair(blockIdx.x, r, c);
  const int i = r * SIDE + threadIdx.x / SIDE, j = c * SIDE + threadIdx.x % SIDE;
  if (i < n && j >= 0 && j <= i) atomicMax(maxima + i, ordered(logit(q, k, i, j)));
}
__global__ void ker_sums(float* out, float* sums, const unsigned* maxima, const float* q, const float* k,
                         const float* v, int n) {
  __shared__ float p[SIDE][SIDE];
  int r, c;
  pair(blockIdx.x, r, c);
  const int t = threadIdx.x, i = r * SIDE + t / SIDE, j = c * SIDE + t % SIDE;
  const bool there = i < n && j >= 0 && j <= i;
  p[t / SIDE][t % SIDE] = there ? expf(logit(q, k, i, j) - number(maxima[i])) : 0.0f;
  __syncthreads();
  for (int a = 0; a < SIDE; ++a) {
    const int row = r * SIDE + a;
    if (row >= n) break;
    float s = 0, weight = 0;
    for (int b = 0; b < SIDE; ++b) {
      const int key = c * SIDE + b;
      if (key < 0 || key > row) continue;
      weight += p[a][b];
      s += p[a][b] * v[(size_t)key * DEPTH + t];
    }
    atomicAdd(out + (size_t)row * DEPTH + t, s);
    if (t == 0) atomicAdd(sums + row, weight);
  }
}
__global__ void ker_quotient(float* out, const float* sums, long long all) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < all) out[i] /= sums[i / DEPTH];
}

extern "C" void launch_attention(float* out, const float* q, const float* k, const float* v, int n,
                                 cudaStream_t stream) {
  unsigned* maxima;
  cudaMallocAsync(&maxima, 2 * size_t(n) * 4, stream);
  float* sums = reinterpret_cast<float*>(maxima + n);
  cudaMemsetAsync(maxima, 0, 2 * size_t(n) * 4, stream);
  cudaMemsetAsync(out, 0, size_t(n) * DEPTH * 4, stream);
  const long long tiles = (n + SIDE - 1) / SIDE, pairs = tiles * (tiles + 1) / 2;
  ker_maxima<<<(unsigned)pairs, 64, 0, stream>>>(maxima, q, k, n);
  ker_sums<<<(unsigned)pairs, 64, 0, stream>>>(out, sums, maxima, q, k, v, n);
  const long long all = (long long)n * DEPTH;
  ker_quotient<<<(unsigned)((all + 255) / 256), 256, 0, stream>>>(out, sums, all);
  cudaFreeAsync(maxima, stream);
}
