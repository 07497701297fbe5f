// Numbers of every width: half and bfloat16, integers, the functions of the mathematics library.
#include "../corpus.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// --- half_arithmetic: half and half2, compared with float rounded after every step
__global__ void halves(int n, const float* in, float* out) {
  const int i = threadIdx.x;
  if (i >= n) return;
  const __half a = __float2half(in[i]), b = __float2half(in[n - 1 - i]);
  out[i] = __half2float(__hadd(a, b));
  out[n + i] = __half2float(__hmul(a, b));
  out[2 * n + i] = __half2float(__hfma(a, b, a));
  out[3 * n + i] = __half2float(__hsub(a, b));
  const __half2 pair = __hfma2(__halves2half2(a, b), __half2half2(b), __halves2half2(b, a));
  out[4 * n + i] = __low2float(pair) - __high2float(pair);
  out[5 * n + i] = __hgt(a, b) ? __half2float(__hmax(a, b)) : __half2float(__hneg(__habs(a)));
}
static float to_half(float x) { return __half2float(__float2half_rn(x)); }
PROGRAM(half_arithmetic) {
  const int n = 64;
  auto in = numbers(n, 2000);
  for (auto& x : in) x = (x - 1000) / 33;
  Array<float> din(in), out(6 * n);
  halves<<<1, n>>>(n, din, out);
  std::vector<float> expected(6 * n);
  for (int i = 0; i < n; ++i) {
    const float a = to_half(in[i]), b = to_half(in[n - 1 - i]);
    expected[i] = to_half(a + b);
    expected[n + i] = to_half(a * b);
    expected[2 * n + i] = to_half(a * b + a);
    expected[3 * n + i] = to_half(a - b);
    expected[4 * n + i] = to_half(a * b + b) - to_half(b * b + a);
    expected[5 * n + i] = a > b ? a : -std::fabs(a);
  }
  return close(out.host(), expected);
}

// --- half_vectors: sums of half2 loads in float, and the functions of half
__global__ void half_functions(int n, const __half2* in, float* out) {
  const int i = threadIdx.x;
  if (i >= n) return;
  const float2 v = __half22float2(in[i]);
  out[i] = v.x + v.y;
  out[n + i] = __half2float(hexp(__low2half(in[i])));
  out[2 * n + i] = __half2float(hsqrt(__habs(__high2half(in[i]))));
  out[3 * n + i] = static_cast<float>(__half2int_rn(__low2half(in[i])));
  out[4 * n + i] = __half2float(__short_as_half(static_cast<short>(__half_as_short(__high2half(in[i])) ^ 0x8000)));
}
PROGRAM(half_vectors) {
  const int n = 50;
  std::vector<__half> in;
  for (const float x : numbers(2 * n, 100)) in.push_back(__float2half(x / 16 - 3));
  Array<__half> din(in);
  Array<float> out(5 * n);
  half_functions<<<1, 64>>>(n, reinterpret_cast<const __half2*>(static_cast<__half*>(din)), out);
  std::vector<float> expected(5 * n);
  for (int i = 0; i < n; ++i) {
    const float x = __half2float(in[2 * i]), y = __half2float(in[2 * i + 1]);
    expected[i] = x + y;
    expected[n + i] = std::exp(x);
    expected[2 * n + i] = std::sqrt(std::fabs(y));
    expected[3 * n + i] = std::nearbyint(x);
    expected[4 * n + i] = -y;
  }
  return close(out.host(), expected, 1.1e-3);
}

// --- bfloat16_arithmetic: conversions in each rounding, products, pairs
__global__ void bfloats(int n, const float* in, float* out) {
  const int i = threadIdx.x;
  if (i >= n) return;
  const __nv_bfloat16 a = __float2bfloat16(in[i]), b = __float2bfloat16(in[n - 1 - i]);
  out[i] = __bfloat162float(a);
  out[n + i] = __bfloat162float(__float2bfloat16_rz(in[i]));
  out[2 * n + i] = __bfloat162float(__hadd(a, b));
  out[3 * n + i] = __bfloat162float(__hmul(a, b));
  const __nv_bfloat162 pair = __hfma2(__halves2bfloat162(a, b), __halves2bfloat162(b, b), __halves2bfloat162(a, a));
  out[4 * n + i] = __low2float(pair) + __high2float(pair);
}
static float to_bfloat(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, 4);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
  std::memcpy(&x, &bits, 4);
  return x;
}
static float chopped(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, 4);
  bits &= 0xffff0000u;
  std::memcpy(&x, &bits, 4);
  return x;
}
PROGRAM(bfloat16_arithmetic) {
  const int n = 64;
  auto in = numbers(n, 20000);
  for (auto& x : in) x = (x - 10000) / 333;
  Array<float> din(in), out(5 * n);
  bfloats<<<1, n>>>(n, din, out);
  std::vector<float> expected(5 * n);
  for (int i = 0; i < n; ++i) {
    const float a = to_bfloat(in[i]), b = to_bfloat(in[n - 1 - i]);
    expected[i] = a;
    expected[n + i] = chopped(in[i]);
    expected[2 * n + i] = to_bfloat(a + b);
    expected[3 * n + i] = to_bfloat(a * b);
    expected[4 * n + i] = to_bfloat(a * b + a) + to_bfloat(b * b + a);
  }
  return close(out.host(), expected);
}

// --- integer_instructions: bits, bytes, high products, saturation
__global__ void integers(const unsigned* in, unsigned* out) {
  const int t = threadIdx.x;
  const unsigned a = in[t] * 2654435761u, b = in[63 - t] * 40503u + 1;
  const int s = static_cast<int>(a);
  unsigned* o = out + t * 16;
  o[0] = __popc(a);
  o[1] = __clz(b);
  o[2] = __brev(a);
  o[3] = __ffs(b);
  o[4] = __byte_perm(a, b, 0x5140);
  o[5] = __umulhi(a, b);
  o[6] = static_cast<unsigned>(__mulhi(s, static_cast<int>(b)));
  o[7] = __funnelshift_l(a, b, b & 31);
  o[8] = __usad(a & 0xffff, b & 0xffff, 7u);
  o[9] = static_cast<unsigned>(s >> (b & 15));
  o[10] = a / b + a % b;
  o[11] = static_cast<unsigned>(s / 77 - s % 77);
  o[12] = static_cast<unsigned>(abs(s) % 1000 + max(s, 5) - min(s, -5));
  o[13] = static_cast<unsigned char>(a) * static_cast<signed char>(b);
  o[14] = __vadd4(a, b);
  o[15] = __dp4a(a, b, 9u);
}
PROGRAM(integer_instructions) {
  const auto in = numbers<unsigned>(64, 10000);
  Array<unsigned> din(in), out(64 * 16);
  integers<<<1, 64>>>(din, out);
  std::vector<unsigned> expected(64 * 16);
  for (int t = 0; t < 64; ++t) {
    const unsigned a = in[t] * 2654435761u, b = in[63 - t] * 40503u + 1;
    const int s = static_cast<int>(a);
    unsigned* o = &expected[t * 16];
    o[0] = static_cast<unsigned>(__builtin_popcount(a));
    o[1] = b ? static_cast<unsigned>(__builtin_clz(b)) : 32;
    for (int bit = 0; bit < 32; ++bit) o[2] |= (a >> bit & 1) << (31 - bit);
    o[3] = static_cast<unsigned>(__builtin_ffs(static_cast<int>(b)));
    o[4] = (a & 0xff) | (b & 0xff) << 8 | (a >> 8 & 0xff) << 16 | (b >> 8 & 0xff) << 24;
    o[5] = static_cast<unsigned>(static_cast<std::uint64_t>(a) * b >> 32);
    o[6] = static_cast<unsigned>(static_cast<std::int64_t>(s) * static_cast<int>(b) >> 32);
    o[7] = static_cast<unsigned>(((static_cast<std::uint64_t>(b) << 32 | a) << (b & 31)) >> 32);
    o[8] = static_cast<unsigned>(std::abs(static_cast<int>(a & 0xffff) - static_cast<int>(b & 0xffff))) + 7;
    o[9] = static_cast<unsigned>(s >> (b & 15));
    o[10] = a / b + a % b;
    o[11] = static_cast<unsigned>(s / 77 - s % 77);
    o[12] = static_cast<unsigned>(s < 0 ? -static_cast<std::int64_t>(s) : s) % 1000 + static_cast<unsigned>(s > 5 ? s : 5) - static_cast<unsigned>(s < -5 ? s : -5);
    o[13] = static_cast<unsigned>(static_cast<unsigned char>(a) * static_cast<signed char>(b));
    o[15] = 9;
    for (int byte = 0; byte < 32; byte += 8) {
      o[14] |= (((a >> byte) + (b >> byte)) & 0xff) << byte;
      o[15] += (a >> byte & 0xff) * (b >> byte & 0xff);
    }
  }
  return close(out.host(), expected);
}

// --- integers_of_64_bits: products, quotients, shifts, carries over 128 bits
__global__ void long_integers(const unsigned long long* in, unsigned long long* out) {
  const int t = threadIdx.x;
  const unsigned long long a = in[t] * 0x9e3779b97f4a7c15ull, b = in[31 - t] * 0x2545f491ull + 3;
  const long long s = static_cast<long long>(a);
  unsigned long long* o = out + t * 8;
  o[0] = a * b;
  o[1] = __umul64hi(a, b);
  o[2] = a / b + a % b;
  o[3] = static_cast<unsigned long long>(s / 12345 + s % 777);
  o[4] = static_cast<unsigned long long>(s >> (b & 63)) ^ (a << (b & 31));
  o[5] = __popcll(a) * 1000 + __clzll(static_cast<long long>(b)) + __ffsll(s);
  unsigned __int128 wide = static_cast<unsigned __int128>(a) * b + a;
  wide += static_cast<unsigned __int128>(b) << 60;
  o[6] = static_cast<unsigned long long>(wide);
  o[7] = static_cast<unsigned long long>(wide >> 64);
}
PROGRAM(integers_of_64_bits) {
  const auto in = numbers<unsigned long long>(32, 60000);
  Array<unsigned long long> din(in), out(32 * 8);
  long_integers<<<1, 32>>>(din, out);
  const auto got = out.host();
  for (int t = 0; t < 32; ++t) {
    const unsigned long long a = in[t] * 0x9e3779b97f4a7c15ull, b = in[31 - t] * 0x2545f491ull + 3;
    const long long s = static_cast<long long>(a);
    unsigned __int128 wide = static_cast<unsigned __int128>(a) * b;
    const unsigned long long high = static_cast<unsigned long long>(wide >> 64);
    wide += a;
    wide += static_cast<unsigned __int128>(b) << 60;
    const unsigned long long expected[] = {
        a * b, high, a / b + a % b, static_cast<unsigned long long>(s / 12345 + s % 777), static_cast<unsigned long long>(s >> (b & 63)) ^ (a << (b & 31)),
        static_cast<unsigned long long>(__builtin_popcountll(a) * 1000 + __builtin_clzll(b) + __builtin_ffsll(s)), static_cast<unsigned long long>(wide),
        static_cast<unsigned long long>(wide >> 64)};
    if (std::memcmp(expected, &got[t * 8], sizeof expected) != 0) return false;
  }
  return true;
}

// --- functions_of_float: exponentials, logarithms, roots, error function
__global__ void float_functions(int n, const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = in[i];
  out[i] = expf(x);
  out[n + i] = logf(x + 11);
  out[2 * n + i] = tanhf(x);
  out[3 * n + i] = erff(x);
  out[4 * n + i] = powf(x + 11, 0.7f);
  out[5 * n + i] = sqrtf(x + 11) + rsqrtf(x + 11) + cbrtf(x);
  out[6 * n + i] = log1pf(x + 10.5f) + expm1f(x / 10) + exp2f(x) + log2f(x + 11) + log10f(x + 11);
  out[7 * n + i] = __expf(x / 8) + __logf(x + 11);
  out[8 * n + i] = floorf(x) + ceilf(x) + roundf(x) + truncf(x) + rintf(x) + fmodf(x, 3) + remainderf(x, 2);
  out[9 * n + i] = x / (x + 11) + __fdividef(x, 7) + fmaf(x, x, x) + copysignf(2, x) + hypotf(x, 3) + ldexpf(x, -3);
}
PROGRAM(functions_of_float) {
  const int n = 400;
  std::vector<float> in(n);
  for (int i = 0; i < n; ++i) in[i] = (i - 200) * 0.0497f;
  Array<float> din(in), out(10 * n);
  float_functions<<<2, 256>>>(n, din, out);
  std::vector<float> expected(10 * n);
  for (int i = 0; i < n; ++i) {
    const double x = in[i], y = in[i] + 11;
    const double values[] = {
        std::exp(x), std::log(y), std::tanh(x), std::erf(x), std::pow(y, 0.7f), std::sqrt(y) + 1 / std::sqrt(y) + std::cbrt(x),
        std::log1p(x + 10.5) + std::expm1(x / 10) + std::exp2(x) + std::log2(y) + std::log10(y), std::exp(x / 8) + std::log(y),
        std::floor(x) + std::ceil(x) + std::round(x) + std::trunc(x) + std::rint(x) + std::fmod(x, 3) + std::remainder(x, 2),
        x / y + x / 7 + x * x + x + std::copysign(2, x) + std::hypot(x, 3) + std::ldexp(x, -3)};
    for (int k = 0; k < 10; ++k) expected[k * n + i] = static_cast<float>(values[k]);
  }
  return close(out.host(), expected, 2e-6);
}

// --- circular_functions: small arguments, and large ones that need the slow path
__global__ void circular(int n, const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = in[i];
  float s, c;
  sincosf(x, &s, &c);
  out[i] = sinf(x);
  out[n + i] = cosf(x);
  out[2 * n + i] = s * 2 + c;
  out[3 * n + i] = atan2f(x, 2) + atanf(x);
  out[4 * n + i] = sinhf(x / 1e5f) + asinf(0.9f * s) + coshf(c);
  out[5 * n + i] = tanf(atanf(x / 1e5f));
}
PROGRAM(circular_functions) {
  const int n = 256;
  std::vector<float> in(n);
  for (int i = 0; i < n; ++i) in[i] = (i % 2 ? 1 : -1) * (i < 128 ? i * 0.11f : i * i * 7.3f);
  Array<float> din(in), out(6 * n);
  circular<<<2, 128>>>(n, din, out);
  std::vector<float> expected(6 * n);
  for (int i = 0; i < n; ++i) {
    const double x = in[i], s = std::sin(x), c = std::cos(x);
    const double values[] = {s, c, s * 2 + c, std::atan2(x, 2) + std::atan(x), std::sinh(x / 1e5) + std::asin(0.9 * s) + std::cosh(c), x / 1e5};
    for (int k = 0; k < 6; ++k) expected[k * n + i] = static_cast<float>(values[k]);
  }
  return close(out.host(), expected, 1e-5);
}

// --- functions_of_double: the same in double, and special values
__global__ void double_functions(int n, const double* in, double* out) {
  const int i = threadIdx.x;
  if (i >= n) return;
  const double x = in[i];
  out[i] = exp(x) + tanh(x);
  out[n + i] = log(x + 11) + log1p(x + 10.5);
  out[2 * n + i] = sin(x) * cos(x);
  out[3 * n + i] = erf(x) + erfc(x / 2);
  out[4 * n + i] = pow(x + 11, 1.7);
  out[5 * n + i] = sqrt(x + 11) / (x + 12) + fma(x, x, -x) + rsqrt(x + 11);
  out[6 * n + i] = static_cast<double>(__double2int_rn(x * 100)) + static_cast<float>(x) + lgamma(x + 11);
}
PROGRAM(functions_of_double) {
  const int n = 100;
  std::vector<double> in(n);
  for (int i = 0; i < n; ++i) in[i] = (i - 50) * 0.1993;
  Array<double> din(in), out(7 * n);
  double_functions<<<1, 128>>>(n, din, out);
  std::vector<double> expected(7 * n);
  for (int i = 0; i < n; ++i) {
    const double x = in[i];
    const double values[] = {std::exp(x) + std::tanh(x), std::log(x + 11) + std::log1p(x + 10.5), std::sin(x) * std::cos(x), std::erf(x) + std::erfc(x / 2),
                             std::pow(x + 11, 1.7), std::sqrt(x + 11) / (x + 12) + std::fma(x, x, -x) + 1 / std::sqrt(x + 11),
                             std::nearbyint(x * 100) + static_cast<float>(x) + std::lgamma(x + 11)};
    for (int k = 0; k < 7; ++k) expected[k * n + i] = values[k];
  }
  return close(out.host(), expected, 2e-14);
}

// --- conversions: between widths and signs, in each rounding, and what does not fit
__global__ void convert(const float* in, int* out) {
  const int t = threadIdx.x;
  const float x = in[t];
  int* o = out + t * 8;
  o[0] = static_cast<int>(x);
  o[1] = __float2int_rn(x);
  o[2] = __float2int_rd(x);
  o[3] = __float2int_ru(x);
  o[4] = static_cast<int>(__float2uint_rz(x));
  o[5] = static_cast<int>(__float2ll_rn(x) >> 8);
  o[6] = __float_as_int(__int2float_rz(o[0] * 16777217));
  o[7] = __float_as_int(__saturatef(x)) + static_cast<signed char>(static_cast<int>(x));
}
PROGRAM(conversions) {
  const std::vector<float> in = {0.5f, 1.5f, -2.5f, 1e20f, -1e20f, NAN, -0.0f, 255.9f};
  Array<float> din(in);
  Array<int> out(64);
  convert<<<1, 8>>>(din, out);
  const auto got = out.host();
  const int firsts[] = {0, 1, -2, INT32_MAX, INT32_MIN, 0, 0, 255}, nearest[] = {0, 2, -2, INT32_MAX, INT32_MIN, 0, 0, 256};
  const int downs[] = {0, 1, -3, INT32_MAX, INT32_MIN, 0, 0, 255}, ups[] = {1, 2, -2, INT32_MAX, INT32_MIN, 0, 0, 256};
  const int unsigneds[] = {0, 1, 0, -1, 0, 0, 0, 255};
  for (int t = 0; t < 8; ++t) {
    const int* g = &got[t * 8];
    if (g[0] != firsts[t] || g[1] != nearest[t] || g[2] != downs[t] || g[3] != ups[t] || g[4] != unsigneds[t]) {
      std::printf("%g: %d %d %d %d %d\n", in[t], g[0], g[1], g[2], g[3], g[4]);
      return false;
    }
  }
  return got[7 * 8 + 5] == 1 && got[1 * 8 + 6] == 0x4b800000 && got[1 * 8 + 7] == 0x3f800000 + 1;
}
