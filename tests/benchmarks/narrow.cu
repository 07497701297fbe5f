// Kernels of students on bytes and halves, for what the sim's checks cost where values are narrow. Each launcher fills
// `out` from `in`, both of 1 MiB.
#include <cuda_fp16.h>
#include <cstdint>

constexpr int threads = 256, side = 1024, tile = 16;
using Byte = std::uint8_t;

__global__ void stream(const Byte* in, Byte* out) {
  const int at = blockIdx.x * threads + threadIdx.x;
  out[at] = 255 - in[at];
}

__global__ void stream_halves(const __half* in, __half* out) {
  const int at = blockIdx.x * threads + threadIdx.x;
  out[at] = __hadd(in[at], in[at]);
}

// A row of 256 halves per block.
__global__ void softmax_rows(const __half* in, __half* out) {
  __shared__ float partial[threads];
  const int at = blockIdx.x * threads + threadIdx.x;
  const float mine = __half2float(in[at]);
  partial[threadIdx.x] = mine;
  for (int half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] = fmaxf(partial[threadIdx.x], partial[threadIdx.x + half]);
  }
  __syncthreads();
  const float power = __expf(mine - partial[0]);
  __syncthreads();
  partial[threadIdx.x] = power;
  for (int half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  __syncthreads();
  out[at] = __float2half(power / partial[0]);
}

__global__ void reduction(const Byte* in, Byte* out) {
  __shared__ Byte partial[threads];
  partial[threadIdx.x] = in[blockIdx.x * threads + threadIdx.x];
  for (int half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] = max(partial[threadIdx.x], partial[threadIdx.x + half]);
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

__global__ void stencil(const Byte* in, Byte* out) {
  const int at = blockIdx.x * threads + threadIdx.x, last = side * side - 1;
  out[at] = (in[at > 0 ? at - 1 : 0] + 2 * in[at] + in[at < last ? at + 1 : last]) / 4;
}

__global__ void blur(const Byte* in, Byte* out) {
  const int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
  int sum = 0;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      const int row = min(max(y + dy, 0), side - 1), column = min(max(x + dx, 0), side - 1);
      sum += in[row * side + column];
    }
  }
  out[y * side + x] = sum / 9;
}

__global__ void grey(const Byte* in, Byte* out) {
  const int at = blockIdx.x * threads + threadIdx.x;
  out[at] = (77 * in[3 * at] + 151 * in[3 * at + 1] + 28 * in[3 * at + 2]) / 256;
}

__global__ void lookup(const Byte* in, const Byte* table, Byte* out) {
  const int at = blockIdx.x * threads + threadIdx.x;
  out[at] = table[in[at]];
}

// The first 256 rows and columns, of a pitch of 1024.
__global__ void product(const Byte* in, Byte* out) {
  __shared__ Byte a[tile][tile], b[tile][tile];
  const int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
  int sum = 0;
  for (int first = 0; first < 256; first += tile) {
    a[threadIdx.y][threadIdx.x] = in[y * side + first + threadIdx.x];
    b[threadIdx.y][threadIdx.x] = in[(first + threadIdx.y) * side + x];
    __syncthreads();
    for (int k = 0; k < tile; ++k) sum += a[threadIdx.y][k] * b[k][threadIdx.x];
    __syncthreads();
  }
  out[y * side + x] = sum;
}

__global__ void transposition(const Byte* in, Byte* out) {
  __shared__ Byte held[32][33];
  const int x = blockIdx.x * 32, y = blockIdx.y * 32;
  for (int n = threadIdx.y; n < 32; n += 8) held[n][threadIdx.x] = in[(y + n) * side + x + threadIdx.x];
  __syncthreads();
  for (int n = threadIdx.y; n < 32; n += 8) out[(x + n) * side + y + threadIdx.x] = held[threadIdx.x][n];
}

constexpr int whole = side * side / threads;
const dim3 tiles(side / tile, side / tile), of_a_tile(tile, tile);
#define LAUNCHER(name) extern "C" void launch_##name([[maybe_unused]] const Byte* in, Byte* out)
LAUNCHER(stream) { stream<<<whole, threads>>>(in, out); }
LAUNCHER(stream_halves) {
  stream_halves<<<whole / 2, threads>>>(reinterpret_cast<const __half*>(in), reinterpret_cast<__half*>(out));
}
LAUNCHER(softmax_rows) {
  softmax_rows<<<whole / 4, threads>>>(reinterpret_cast<const __half*>(in), reinterpret_cast<__half*>(out));
}
LAUNCHER(reduction) { reduction<<<whole / 4, threads>>>(in, out); }
LAUNCHER(stencil) { stencil<<<whole, threads>>>(in, out); }
LAUNCHER(blur) { blur<<<tiles, of_a_tile>>>(in, out); }
LAUNCHER(grey) { grey<<<whole / 4, threads>>>(in, out); }
LAUNCHER(lookup) { lookup<<<whole, threads>>>(in, in, out); }
LAUNCHER(product) { product<<<dim3(16, 16), of_a_tile>>>(in, out); }
LAUNCHER(transposition) { transposition<<<dim3(32, 32), dim3(32, 8)>>>(in, out); }
