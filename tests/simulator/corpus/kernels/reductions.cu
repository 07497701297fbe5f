// Sums in seven styles, and the place of the maximum.
#include "../corpus.h"

static float sum_of(const std::vector<float>& list) {
  float sum = 0;
  for (const float x : list) sum += x;
  return sum;
}

// --- reduce_interleaved: neighbours first, with a modulo
__global__ void interleaved(const float* in, float* out) {
  __shared__ float s[256];
  const int t = threadIdx.x;
  s[t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    if (t % (2 * step) == 0) s[t] += s[t + step];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
PROGRAM(reduce_interleaved) {
  const auto in = numbers(1024);
  Array<float> din(in), out(4);
  interleaved<<<4, 256>>>(din, out);
  return sum_of(out.host()) == sum_of(in);
}

// --- reduce_sequential: halves are folded
__global__ void sequential(const float* in, float* out) {
  extern __shared__ float s[];
  const int t = threadIdx.x;
  s[t] = in[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step >>= 1) {
    if (t < step) s[t] += s[t + step];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
PROGRAM(reduce_sequential) {
  const auto in = numbers(1024);
  Array<float> din(in), out(8);
  sequential<<<8, 128, 128 * sizeof(float)>>>(din, out);
  return sum_of(out.host()) == sum_of(in);
}

// --- reduce_first_add_on_load: every thread loads two, template for the block size
template <int block>
__global__ void unrolled(const float* in, float* out) {
  __shared__ float s[block];
  const int t = threadIdx.x, i = blockIdx.x * block * 2 + t;
  s[t] = in[i] + in[i + block];
  __syncthreads();
  if constexpr (block >= 256) {
    if (t < 128) s[t] += s[t + 128];
    __syncthreads();
  }
  if constexpr (block >= 128) {
    if (t < 64) s[t] += s[t + 64];
    __syncthreads();
  }
  if (t < 32) {
    float x = s[t] + s[t + 32];
#pragma unroll
    for (int step = 16; step > 0; step /= 2) x += __shfl_down_sync(~0u, x, step);
    if (t == 0) out[blockIdx.x] = x;
  }
}
PROGRAM(reduce_first_add_on_load) {
  const auto in = numbers(2048);
  Array<float> din(in), out(4), out_of_128(8);
  unrolled<256><<<4, 256>>>(din, out);
  unrolled<128><<<8, 128>>>(din, out_of_128);
  return sum_of(out.host()) == sum_of(in) && sum_of(out_of_128.host()) == sum_of(in);
}

// --- reduce_by_shuffles: warps by shuffles, their sums by the first warp
__global__ void shuffled(int n, const float* in, float* out) {
  __shared__ float slots[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  float x = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x += in[i];
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  if (lane == 0) slots[warp] = x;
  __syncthreads();
  if (warp == 0) {
    x = lane < warps ? slots[lane] : 0;
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    if (lane == 0) atomicAdd(out, x);
  }
}
PROGRAM(reduce_by_shuffles) {
  const auto in = numbers(10007);
  Array<float> din(in), out(1);
  out.zero();
  shuffled<<<5, 224>>>(10007, din, out);
  return out.host()[0] == sum_of(in);
}

// --- reduce_by_atomics: one atomic per thread
__global__ void atomics(int n, const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(out, in[i]);
}
PROGRAM(reduce_by_atomics) {
  const auto in = numbers(3000);
  Array<float> din(in), out(1);
  out.zero();
  atomics<<<12, 256>>>(3000, din, out);
  return out.host()[0] == sum_of(in);
}

// --- reduce_vectorised: four floats a load, and a tail
__global__ void vectorised(int n, const float* in, double* out) {
  double x = 0;
  const float4* fours = reinterpret_cast<const float4*>(in);
  for (int i = threadIdx.x; i < n / 4; i += 32) {
    const float4 v = __ldg(&fours[i]);
    x += static_cast<double>(v.x) + v.y + v.z + v.w;
  }
  if (threadIdx.x < n % 4) x += in[n / 4 * 4 + threadIdx.x];
  for (int step = 16; step > 0; step /= 2) x += __shfl_down_sync(~0u, x, step);
  if (threadIdx.x == 0) *out = x;
}
PROGRAM(reduce_vectorised) {
  const auto in = numbers(1003);
  Array<float> din(in);
  Array<double> out(1);
  vectorised<<<1, 32>>>(1003, din, out);
  return out.host()[0] == sum_of(in);
}

// --- place_of_maximum: value and place in one 64-bit word
__global__ void argmax(int n, const float* in, unsigned long long* best) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const unsigned bits = __float_as_uint(in[i]);
    const unsigned key = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    atomicMax(best, static_cast<unsigned long long>(key) << 32 | static_cast<unsigned>(n - i));
  }
}
PROGRAM(place_of_maximum) {
  const int n = 2500;
  auto in = numbers(n, 1000);
  for (auto& x : in) x -= 2000;
  in[1234] = -3;
  Array<float> din(in);
  Array<unsigned long long> best(1);
  best.zero();
  argmax<<<4, 128>>>(n, din, best);
  return n - static_cast<int>(best.host()[0] & 0xffffffffu) == 1234;
}
