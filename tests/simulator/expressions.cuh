// What programs of random expressions (expressions.py) consist of: operations of C++ that are defined for every operand,
// models for the host of what only a device has, and a main function that compares the two.
//
// A function takes four words of 64 bits and gives one; a NaN counts as one value, whatever its bits.
#pragma once

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <iterator>
#include <vector>

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = unsigned long long;
using u128 = unsigned __int128;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = long long;
using s128 = __int128;
using f32 = float;
using f64 = double;
struct f16 {  // the bits of a number in half precision
  u16 bits;
};
struct bf16 {
  u16 bits;
};

#define HD __host__ __device__ inline

// --- C++ without undefined behaviour ---------------------------------------------------------------------------------

template <class T> struct UnsignedOf : std::make_unsigned<T> {};
template <> struct UnsignedOf<u128> {
  using type = u128;
};
template <> struct UnsignedOf<s128> {
  using type = u128;
};
template <class T> using Unsigned = typename UnsignedOf<T>::type;
template <class T> using Wrap = std::conditional_t<(sizeof(T) < 4), u32, Unsigned<T>>;
template <class T> constexpr bool is_signed = T(-1) < T(0);
template <class T> constexpr u32 width = 8 * sizeof(T);

template <class T> HD T add(T a, T b) { return T(Wrap<T>(a) + Wrap<T>(b)); }
template <class T> HD T sub(T a, T b) { return T(Wrap<T>(a) - Wrap<T>(b)); }
template <class T> HD T mul(T a, T b) { return T(Wrap<T>(a) * Wrap<T>(b)); }
template <class T> HD T neg(T a) { return sub<T>(0, a); }
template <class T> HD T magnitude(T a) { return a < 0 ? neg(a) : a; }
template <class T> HD T quotient(T a, T b) {
  if (b == 0) return T(-1);
  if (is_signed<T> && b == T(-1)) return neg(a);
  return T(a / b);
}
template <class T> HD T remainder_of(T a, T b) {
  if (b == 0) return a;
  if (is_signed<T> && b == T(-1)) return 0;
  return T(a % b);
}
template <class T> HD T left(T a, u32 n) { return T(Wrap<T>(a) << (n & (width<T> - 1))); }
template <class T> HD T right(T a, u32 n) { return T(a >> (n & (width<T> - 1))); }
template <class T> HD T rotated(T a, u32 n) {
  const Unsigned<T> x = Unsigned<T>(a);
  n &= width<T> - 1;
  return T(n ? Unsigned<T>(x << n) | Unsigned<T>(x >> (width<T> - n)) : x);
}
template <class T> HD T smaller(T a, T b) { return a < b ? a : b; }
template <class T> HD T larger(T a, T b) { return a < b ? b : a; }
// A product of fixed point with `Shift` bits behind the point, rounded half up.
template <class T, class Wide, int Shift> HD T fixed_product(T a, T b) {
  return T((Wide(a) * Wide(b) + (Wide(1) << (Shift - 1))) >> Shift);
}
template <class T, class Wide> HD T fixed_saturated(T a, T b) {
  const Wide w = Wide(a) + Wide(b), low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  return T(w < low ? low : w > high ? high : w);
}

// Strings of bits.
template <int A, int B> struct Fields {
  u64 first : A, second : B, third : 64 - A - B;
};
template <int A, int B> struct SignedFields {
  s64 first : A, second : B, third : 64 - A - B;
};
template <class To, class From> HD To same_bits(From from) {
  To to;
  static_assert(sizeof(To) == sizeof(From));
  memcpy(&to, &from, sizeof to);
  return to;
}
template <int A, int B> HD u64 fields_of(u64 a, u64 b, u64 c) {
  Fields<A, B> f;
  f.first = a;
  f.second = b;
  f.third = c;
  return same_bits<u64>(f);
}
template <int A, int B> HD u64 second_field_set(u64 a, u64 b) {
  auto f = same_bits<Fields<A, B>>(a);
  f.second = b;
  return same_bits<u64>(f);
}
template <int A, int B> HD u64 fields_summed(u64 a) {
  const auto f = same_bits<Fields<A, B>>(a);
  return u64(f.first) + f.second * 3 + f.third * 5;
}
template <int A, int B> HD s64 signed_fields_mixed(u64 a) {
  const auto f = same_bits<SignedFields<A, B>>(a);
  return s64(u64(f.first) ^ u64(f.second) << 1 ^ u64(f.third) << 2);
}
HD u32 byte_at(u64 a, u64 b, u32 n) {  // of an array in local memory
  u8 bytes[16];
  memcpy(bytes, &a, 8);
  memcpy(bytes + 8, &b, 8);
  return bytes[n & 15];
}
HD u64 byte_put(u64 a, u32 n, u32 value) {
  u8 bytes[8];
  memcpy(bytes, &a, 8);
  bytes[n & 7] = u8(value);
  memcpy(&a, bytes, 8);
  return a;
}
HD u32 digit_of(u32 n) { return u32("0123456789abcdef"[n & 15]); }
HD u32 longest_run(u64 a) {
  u32 n = 0;
  for (; a; ++n) a &= a << 1;
  return n;
}
HD u64 interleaved(u32 a, u32 b) {
  u64 r = 0;
  for (int n = 0; n < 32; ++n) r |= u64(a >> n & 1) << 2 * n | u64(b >> n & 1) << (2 * n + 1);
  return r;
}
HD u32 checksum(u32 crc, u32 byte) {
  crc ^= byte & 255;
  for (int n = 0; n < 8; ++n) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  return crc;
}
HD u32 parity(u64 a) {
  for (u32 n = 32; n; n /= 2) a ^= a >> n;
  return u32(a & 1);
}

// Reals: a NaN has one pattern of bits.
HD u32 bits_of(f32 v) { return v != v ? 0x7fffffffu : same_bits<u32>(v); }
HD u64 bits_of(f64 v) { return v != v ? 0x7fffffffffffffffull : same_bits<u64>(v); }
HD u16 bits_of(f16 v) { return (v.bits & 0x7fff) > 0x7c00 ? 0x7fff : v.bits; }
HD u16 bits_of(bf16 v) { return (v.bits & 0x7fff) > 0x7f80 ? 0x7fff : v.bits; }
// As C++ converts, of a value that the result can hold.
template <class T, class S> HD T within(S v) {
  const S low = S(std::numeric_limits<T>::min()), high = S(std::numeric_limits<T>::max() / 2);
  return v != v ? T(0) : T(v < low ? low : v > high ? high : v);
}
template <class T> HD s32 exponent_of(T v) {
  int e = 0;
  if (v - v == 0) frexp(v, &e);
  return e;
}
template <class T> HD T scaled(T v, s32 n) { return ldexp(v, n % 300); }

HD u64 word(bool v) { return v; }
template <class T> HD u64 word(T v) {
  if constexpr (sizeof(T) == 16) {
    return u64(v) ^ u64(u128(v) >> 64) * 0x9e3779b97f4a7c15ull;
  } else if constexpr (std::is_integral_v<T>) {
    return u64(v);
  } else {
    return bits_of(v);
  }
}
// A value of any type from two words.
template <class T> HD T value(u64 a, u64 b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a & 1;
  } else if constexpr (sizeof(T) == 16) {
    return T(u128(a) << 64 | b);
  } else if constexpr (std::is_integral_v<T>) {
    return T(a);
  } else if constexpr (sizeof(T) == 8) {
    return same_bits<T>(a);
  } else if constexpr (sizeof(T) == 4) {
    return same_bits<T>(u32(a >> 32));
  } else {
    return T{u16(a >> 48)};
  }
}

// --- Models for the host ---------------------------------------------------------------------------------------------

enum Mode { rn, rz, rm, rp };  // to nearest, towards zero, down, up

struct Rounding {
  explicit Rounding(Mode mode) {
    constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(modes[mode]);
  }
  ~Rounding() { std::fesetround(FE_TONEAREST); }
};
// `volatile` keeps what is computed between the two changes of the mode.
template <class F, class... T> auto rounded(Mode mode, F f, volatile T... operands) {
  const Rounding rounding(mode);
  volatile auto result = f(operands...);
  return result;
}
constexpr auto plus = [](auto a, auto b) { return a + b; };
constexpr auto minus = [](auto a, auto b) { return a - b; };
constexpr auto times = [](auto a, auto b) { return a * b; };
constexpr auto over = [](auto a, auto b) { return a / b; };
constexpr auto fused = [](auto a, auto b, auto c) { return std::fma(a, b, c); };
constexpr auto root = [](auto a) { return std::sqrt(a); };
template <class T> constexpr auto to = [](auto a) { return T(a); };

template <class T> T clamped(s128 v) {
  const s128 low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  return T(v < low ? low : v > high ? high : v);
}
template <class T> T flushed(T v) { return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(T(0), v) : v; }
template <class T> T saturated(T v) { return v != v || v <= 0 ? T(0) : v < 1 ? v : T(1); }
template <class T> T least(T a, T b, bool nan = false) {
  if (a != a || b != b) return nan ? T(NAN) : a != a ? b : a;
  return a == b ? (std::signbit(a) ? a : b) : a < b ? a : b;
}
template <class T> T greatest(T a, T b, bool nan = false) {
  if (a != a || b != b) return nan ? T(NAN) : a != a ? b : a;
  return a == b ? (std::signbit(a) ? b : a) : a < b ? b : a;
}
// cvt.r?i: a NaN gives the top bit alone if source or result has 64 bits, and else zero.
template <class T, class S> T integral(Mode mode, S v) {
  if (v != v) return sizeof(T) == 8 || sizeof(S) == 8 ? T(Unsigned<T>(1) << (width<T> - 1)) : T(0);
  const long double whole = rounded(mode, [](S a) { return std::nearbyint(a); }, v);
  const long double low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  return whole <= low ? std::numeric_limits<T>::min() : whole >= high ? std::numeric_limits<T>::max() : T(whole);
}
template <class T> T whole(Mode mode, T v) {
  return rounded(mode, [](T a) { return std::nearbyint(a); }, v);
}

// A format of 16 bits with `Fraction` bits behind the point.
template <int Fraction> u16 narrowed(Mode mode, long double v) {
  constexpr int top = (1 << (14 - Fraction)) - 1;  // greatest exponent
  const u16 sign = std::signbit(v) ? 0x8000 : 0, infinity = u16((2 * top + 1) << Fraction);
  if (v != v) return 0x7fff;
  if (std::isinf(v)) return sign | infinity;
  if (v == 0) return sign;
  const int exponent = std::max(std::ilogb(v), 1 - top);
  const long double scaled = std::ldexp(std::fabs(v), Fraction - exponent);
  const bool down = mode == rz || mode == (sign ? rp : rm);
  const long double digits = mode == rn ? std::nearbyint(scaled) : down ? std::floor(scaled) : std::ceil(scaled);
  // Exponents follow each other, so that a carry out of the digits makes the next one.
  const long r = (long(exponent + top - 1) << Fraction) + long(digits);
  return sign | u16(r < infinity ? r : down ? infinity - 1 : infinity);
}
template <int Fraction> f64 widened(u16 bits) {
  constexpr int top = (1 << (14 - Fraction)) - 1;
  const int exponent = bits >> Fraction & (2 * top + 1), digits = bits & ((1 << Fraction) - 1);
  const f64 size = exponent > 2 * top ? (digits ? f64(NAN) : f64(INFINITY))
                   : exponent         ? std::ldexp(f64(digits + (1 << Fraction)), exponent - top - Fraction)
                                      : std::ldexp(f64(digits), 1 - top - Fraction);
  return bits >> 15 ? -size : size;
}
inline f64 wide(f16 v) { return widened<10>(v.bits); }
inline f64 wide(bf16 v) { return widened<7>(v.bits); }
inline f16 half(Mode mode, long double v) { return {narrowed<10>(mode, v)}; }
inline bf16 brain(Mode mode, long double v) { return {narrowed<7>(mode, v)}; }
// Rounded to odd, which decides every later rounding to fewer bits rightly.
inline long double odd_sum(long double a, long double b) {
  std::feclearexcept(FE_INEXACT);
  long double sum = rounded(rz, plus, a, b);
  if (std::fetestexcept(FE_INEXACT)) *reinterpret_cast<unsigned char*>(&sum) |= 1;  // the digits' last bit
  return sum;
}
inline f16 half_fma(f16 a, f16 b, f16 c) { return half(rn, odd_sum((long double)(wide(a)) * wide(b), wide(c))); }
inline bf16 brain_fma(bf16 a, bf16 b, bf16 c) { return brain(rn, odd_sum((long double)(wide(a)) * wide(b), wide(c))); }
// .ftz goes by what the result is when it is rounded with no smallest exponent.
inline f32 flushed_result(Mode mode, long double v) {
  const long double large = std::ldexp(v, 64);  // a tiny result is no denormal there
  const bool tiny = std::fabs(large) < 1 && std::fabs(rounded(mode, to<f32>, large)) < 0x1p-62f;
  return tiny ? std::copysign(0.0f, f32(v)) : rounded(mode, to<f32>, v);
}
inline f32 flushed_fma(Mode mode, f32 a, f32 b, f32 c) {
  const f32 r = rounded(mode, fused, flushed(a), flushed(b), flushed(c));  // its sign if it is zero
  const long double v = odd_sum((long double)(flushed(a)) * flushed(b), flushed(c));
  return v == 0 || v != v || std::isinf(v) ? r : flushed_result(mode, v);
}
template <class H> H relu(H v) { return {u16(v.bits & 0x8000 && wide(v) == wide(v) ? 0 : v.bits)}; }

// Parts of a register.
template <class Part, class F> u32 parts(u32 a, u32 b, F f) {
  u32 r = 0;
  for (u32 n = 0; n < 32; n += width<Part>)
    r |= u32(Unsigned<Part>(f(s64(Part(a >> n)), s64(Part(b >> n))))) << n;
  return r;
}
template <class Part, class F> u32 summed_parts(u32 a, u32 b, u32 c, F f) {
  for (u32 n = 0; n < 32; n += width<Part>) c += u32(f(s64(Part(a >> n)), s64(Part(b >> n))));
  return c;
}
constexpr auto apart = [](s64 a, s64 b) { return a < b ? b - a : a - b; };
template <class A, class B> u32 dot4(u32 a, u32 b, u32 c) {
  for (u32 n = 0; n < 32; n += 8) c += u32(s32(A(a >> n)) * s32(B(b >> n)));
  return c;
}
template <class A, class B> u32 dot2(u32 a, u32 b, u32 c, bool high) {
  for (u32 n = 0; n < 2; ++n) c += u32(s32(A(a >> 16 * n)) * s32(B(b >> 8 * (n + 2 * high))));
  return c;
}

// Bits.
template <class T> u32 leading_zeros(T a) {
  u32 n = 0;
  while (n < width<T> && !(a >> (width<T> - 1 - n) & 1)) ++n;
  return n;
}
template <class T> u32 ones(T a) {
  u32 n = 0;
  for (; a; a &= a - 1) ++n;
  return n;
}
template <class T> u32 first_one(T a) { return a ? ones<T>((a & -a) - 1) + 1 : 0; }
template <class T> T turned(T a) {
  T r = 0;
  for (u32 n = 0; n < width<T>; ++n) r |= (a >> n & 1) << (width<T> - 1 - n);
  return r;
}
template <class T> u32 top_bit(T a, bool amount = false) {
  const u32 zeros = leading_zeros(Unsigned<T>(a < 0 ? ~a : a));
  return zeros == width<T> ? ~0u : amount ? zeros : width<T> - 1 - zeros;
}
// The PTX ISA's own loop for bfe.
template <class T> T extracted(T a, u32 position, u32 length) {
  position &= 255, length &= 255;
  const u32 msb = width<T> - 1;
  const auto bit = [&](u32 n) { return Unsigned<T>(a) >> n & 1; };
  const Unsigned<T> sign = !is_signed<T> || length == 0 ? 0 : bit(std::min(position + length - 1, msb));
  Unsigned<T> d = 0;
  for (u32 i = 0; i <= msb; ++i)
    d |= (i < length && position + i <= msb ? bit(position + i) : sign) << i;
  return T(d);
}
template <class T> T inserted(T a, T b, u32 position, u32 length) {
  position &= 255, length &= 255;
  T f = b;
  for (u32 i = 0; i < length && position + i < width<T>; ++i)
    f = (f & ~(T(1) << (position + i))) | (a >> i & 1) << (position + i);
  return f;
}
inline u32 permuted(u32 a, u32 b, u32 s) {
  u32 r = 0;
  for (u32 n = 0; n < 4; ++n) {
    const u32 pick = s >> 4 * n & 15, byte = u32((u64(b) << 32 | a) >> 8 * (pick & 7)) & 255;
    r |= (pick & 8 ? (byte & 128 ? 255 : 0) : byte) << 8 * n;
  }
  return r;
}
template <class F> u32 picked(u32 a, u32 b, F which) {
  u32 r = 0;
  for (u32 n = 0; n < 4; ++n) r |= (u32((u64(b) << 32 | a) >> 8 * (which(n) & 7)) & 255) << 8 * n;
  return r;
}
inline u32 looked_up(u32 a, u32 b, u32 c, u32 table) {
  u32 r = 0;
  for (u32 n = 0; n < 32; ++n) r |= (table >> ((a >> n & 1) << 2 | (b >> n & 1) << 1 | (c >> n & 1)) & 1) << n;
  return r;
}
inline u32 funnelled(bool to_left, u32 low, u32 high, u32 n) {
  const u64 both = u64(high) << 32 | low;
  return u32(to_left ? both << n >> 32 : both >> n);
}
inline u32 nth_one(u32 mask, u32 base, s32 offset) {
  if (offset == 0) return mask >> base & 1 ? base : ~0u;
  const s32 step = offset < 0 ? -1 : 1;
  u32 left = u32(offset < 0 ? -offset : offset);
  for (s32 n = s32(base); n >= 0 && n < 32; n += step)
    if (mask >> n & 1 && --left == 0) return u32(n);
  return ~0u;
}
inline u32 mask_of(u32 position, u32 length) {
  return u32(position >= 32 ? 0 : ((length >= 32 ? u64(1) << 32 : u64(1) << length) - 1) << position);
}
template <class T> T high_product(T a, T b) {
  return T((std::conditional_t<is_signed<T>, s128, u128>(a) * b) >> width<T>);
}
inline s64 low24(s32 a) { return s32(u32(a) << 8) >> 8; }

// --- The carry flag --------------------------------------------------------------------------------------------------

// What a chain of instructions does with the one flag; a subtraction adds the complement.
template <class T> struct Chain {
  bool flag = false;
  T add(T a, T b, bool with_flag) {
    const u128 sum = u128(Unsigned<T>(a)) + Unsigned<T>(b) + (with_flag && flag);
    flag = sum >> width<T> & 1;
    return T(sum);
  }
  T sub(T a, T b, bool with_flag) {
    if (!with_flag) flag = true;
    return add(a, T(~b), true);
  }
  T low(T a, T b, T c, bool with_flag) { return add(mul<T>(a, b), c, with_flag); }
  T high(T a, T b, T c, bool with_flag) { return add(high_product(a, b), c, with_flag); }
};

// --- Warps -----------------------------------------------------------------------------------------------------------

constexpr int lanes = 32;
using Lanes = u64[lanes];
template <class F> u32 ballot(const Lanes& x, F holds) {
  u32 r = 0;
  for (int n = 0; n < lanes; ++n) r |= u32(bool(holds(x[n]))) << n;
  return r;
}
template <class T, class F> T reduced(const Lanes& x, F f) {
  T r = T(x[0]);
  for (int n = 1; n < lanes; ++n) r = T(f(r, T(x[n])));
  return r;
}
// The PTX ISA's own description of shfl; `c` is the clamp and, from bit 8 on, what tells segments apart.
inline u32 shuffled(const Lanes& x, int lane, char mode, u32 b, u32 c) {
  const int segments = int(c >> 8 & 31), clamp = int(c & 31), n = int(b & 31);
  const int last = (lane & segments) | (clamp & ~segments), first = lane & segments;
  int from = mode == 'u' ? lane - n : mode == 'd' ? lane + n : mode == 'b' ? lane ^ n : first | (n & ~segments);
  const bool valid = mode == 'u' ? from >= last : from <= last;
  if (!valid) from = lane;
  return u32(x[from]) ^ (valid ? 0 : 0x80000000u);
}

#define SLOT(T) reinterpret_cast<T*>(slots)
#ifdef __CUDACC__
__device__ inline u64* shared_slot() {
  __shared__ u64 slots[128];
  return &slots[threadIdx.x];
}
#define SHARED_SLOT(T) reinterpret_cast<T*>(shared_slot())
#endif

// --- Programs --------------------------------------------------------------------------------------------------------

struct Function {
  u64 (*result)(u64, u64, u64, u64, u64, u64*);
  u64 (*before)(u64, u64, u64, u64, u64*);  // what goes into an operation of the warp
  u64 (*of_warp)(const Lanes&, int lane);  // that operation; null: there is none
};

inline u64 scrambled(u64& state) {  // splitmix64
  u64 x = state += 0x9e3779b97f4a7c15ull;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}
// Edges of each width, of reals in both halves of a word, and random bits.
inline u64 drawn(u64& state) {
  static constexpr u32 edges[] = {0,          1,          2,          3,          31,         32,         33,
                                  0x7f,       0x80,       0xff,       0x7fff,     0x8000,     0xffff,     0x7fffffff,
                                  0x80000000, 0xffffffff, 0xfffffffe, 0x3f800000, 0xbf800000, 0x3f000000, 0x7f800000,
                                  0xff800000, 0x7fc00000, 0x00800000, 0x007fffff, 0x7f7fffff, 0x4f000000, 0xcf000000,
                                  0x3ff00000, 0x7ff00000, 0x7ff80000, 0x43e00000, 0x41e00000, 0x3c003c00, 0x7bff0400};
  const u64 r = scrambled(state), pick = r >> 32;
  switch (r % 8) {
    case 0: return edges[pick % std::size(edges)];
    case 1: return u64(edges[pick % std::size(edges)]) << 32;
    case 2: return u64(edges[pick % std::size(edges)]) << 32 | edges[(pick >> 8) % std::size(edges)];
    case 3: return u64(s64(s32(pick) >> (pick & 31)));
    case 4: return (u64(1) << (pick & 63)) - (pick >> 6 & 1);
    case 5: {  // ordinary numbers
      const f32 v = f32(s32(pick)) * 0x1p-24f;
      return same_bits<u64>(f64(v)) & ~u64(0xffffffff) ^ (pick & 256 ? u64(same_bits<u32>(v)) << 32 : 0);
    }
    default: return scrambled(state);
  }
}

using Launch = void (*)(const u64* operands, u64* results, u64* scratch, u32 tuples);

// One line for each function that differs: its number, how often, the words of the first tuple, what the device gives,
// and the host. The number of tuples is a multiple of a block's threads.
inline int compare(const std::vector<Function>& functions, Launch launch, int argc, char** argv) {
  constexpr u32 block = 128;
  const u32 tuples = (argc > 1 ? u32(std::atoi(argv[1])) : 256) / block * block;
  u64 state = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  std::vector<u64> operands(4 * tuples), results(functions.size() * tuples);
  for (u64& word : operands) word = drawn(state);
  u64 *in = nullptr, *out = nullptr, *scratch = nullptr;
  cudaMalloc(&in, operands.size() * 8);
  cudaMalloc(&out, results.size() * 8);
  cudaMalloc(&scratch, 2 * 8 * tuples);
  cudaMemcpy(in, operands.data(), operands.size() * 8, cudaMemcpyHostToDevice);
  launch(in, out, scratch, tuples);
  if (const auto error = cudaMemcpy(results.data(), out, results.size() * 8, cudaMemcpyDeviceToHost)) {
    std::printf("failed %s\n", cudaGetErrorString(error));
    return 1;
  }
  for (std::size_t f = 0; f < functions.size(); ++f) {
    u32 wrong = 0;
    for (u32 first = 0; first < tuples; first += lanes) {
      Lanes before{};
      u64 slots[2];
      for (int lane = 0; functions[f].of_warp && lane < lanes; ++lane) {
        const u64* o = &operands[4 * (first + lane)];
        before[lane] = functions[f].before(o[0], o[1], o[2], o[3], slots);
      }
      for (int lane = 0; lane < lanes; ++lane) {
        const u64* o = &operands[4 * (first + lane)];
        const u64 e = functions[f].of_warp ? functions[f].of_warp(before, lane) : 0;
        const u64 expected = functions[f].result(o[0], o[1], o[2], o[3], e, slots);
        const u64 got = results[f * tuples + first + lane];
        if (got == expected || wrong++) continue;
        std::printf("differs %zu %llx %llx %llx %llx %llx %llx %llx\n", f, o[0], o[1], o[2], o[3], e, got, expected);
      }
    }
    if (wrong) std::printf("wrong %zu %u\n", f, wrong);
  }
  cudaFree(in), cudaFree(out), cudaFree(scratch);
  std::printf("compared %zu functions on %u tuples\n", functions.size(), tuples);
  return 0;
}
