// The approximate functions. Each is computed more accurately than the PTX ISA asks (2 ulp for ex2, rcp, rsqrt and
// div.full, 2^-22 for lg2, 2^-20.5 for sin and cos, 2^-11 for tanh), and in double precision with a fixed order of
// plain operations, so that every build of the handlers gives the same bits. sim: multiversion
#include "engine/isa/real_lanes.h"

namespace sim::SIM_TARGET {
namespace {

// 2^x for |x| < 1100.
SIM_INLINE f64 exp2_of(f64 x) {
  const f64 shifter = 6755399441055744.0;  // 1.5 * 2^52: rounds to an integer that lies in the low bits
  const f64 sum = x + shifter;
  const f64 n = sum - shifter;
  const f64 r = (x - n) * 0.69314718055994530942;
  f64 p = 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const u64 scale = (std::bit_cast<u64>(sum) + 1023) << 52;
  return p * std::bit_cast<f64>(scale);
}

struct Ex2 {
  static SIM_INLINE f32 of(f32 a) {
    const f64 x = a > 200.0f ? 200.0 : a < -200.0f ? -200.0 : a;
    const f32 r = static_cast<f32>(exp2_of(a == a ? x : 0.0));
    return a == a ? r : real_of<f32>(BitsOf<f32>::nan);
  }
};

struct Lg2 {
  static SIM_INLINE f32 of(f32 a) {
    const f64 x = a;  // subnormals of f32 are normal here
    const u64 b = std::bit_cast<u64>(x);
    const u64 shifted = b - 0x3fe6a09e667f3bcdull;  // sqrt(1/2)
    const f64 exponent = static_cast<f64>(static_cast<s64>(shifted) >> 52);
    const f64 m = std::bit_cast<f64>(b - (shifted & 0xfff0000000000000ull));
    const f64 z = (m - 1.0) / (m + 1.0), q = z * z;
    f64 p = 1.0 / 13;
    p = p * q + 1.0 / 11;
    p = p * q + 1.0 / 9;
    p = p * q + 1.0 / 7;
    p = p * q + 1.0 / 5;
    p = p * q + 1.0 / 3;
    p = p * q + 1.0;
    const f32 r = static_cast<f32>(exponent + p * z * 2.88539008177792681472);
    constexpr f32 infinity = std::numeric_limits<f32>::infinity();
    return a > 0.0f ? (a == infinity ? infinity : r) : a == 0.0f ? -infinity : real_of<f32>(BitsOf<f32>::nan);
  }
};

// sin(x + quadrant * pi/2)
template <int Quadrant> struct Sine {
  static SIM_INLINE f32 of(f32 a) {
    const f64 shifter = 6755399441055744.0;
    const f64 sum = a * 0.63661977236758134308 + shifter;
    const f64 n = sum - shifter;
    const f64 r = (a - n * 1.57079632679489655800e+00) - n * 6.12323399573676603587e-17;
    const f64 q = r * r;
    f64 s = 1.0 / 362880;
    s = s * q - 1.0 / 5040;
    s = s * q + 1.0 / 120;
    s = s * q - 1.0 / 6;
    s = (s * q + 1.0) * r;
    f64 c = -1.0 / 3628800;
    c = c * q + 1.0 / 40320;
    c = c * q - 1.0 / 720;
    c = c * q + 1.0 / 24;
    c = c * q - 0.5;
    c = c * q + 1.0;
    const u64 k = std::bit_cast<u64>(sum) + Quadrant;
    const f64 v = k & 1 ? c : s;
    const f32 result = static_cast<f32>(k & 2 ? -v : v);
    const bool finite = (bits_of(a) & BitsOf<f32>::exponent) != BitsOf<f32>::exponent;
    const f32 kept = Quadrant == 0 && a == 0.0f ? a : result;
    return finite ? kept : real_of<f32>(BitsOf<f32>::nan);
  }
};

struct Tanh {
  static SIM_INLINE f32 of(f32 a) {
    const f64 x = a > 20.0f ? 20.0 : a < -20.0f ? -20.0 : a;
    const f64 e = exp2_of((a == a ? x : 0.0) * 2.88539008177792681472);
    const f32 small = std::fabs(a) < 1e-4f ? a : static_cast<f32>((e - 1.0) / (e + 1.0));
    return a == a ? small : real_of<f32>(BitsOf<f32>::nan);
  }
};

struct Rcp {
  static SIM_INLINE f32 of(f32 a) { return canonical(1.0f / a); }
};
struct Sqrt {
  static SIM_INLINE f32 of(f32 a) { return canonical(std::sqrt(a)); }
};
struct Rsqrt {
  static SIM_INLINE f32 of(f32 a) { return canonical(1.0f / std::sqrt(a)); }
};

// A denominator above 2^126 gives 0, or NaN for an infinite numerator.
struct Divide {
  static SIM_INLINE f32 of(f32 a, f32 b) {
    const u32 magnitude = bits_of(b) & ~BitsOf<f32>::sign;
    const bool huge = magnitude > 0x7e800000 && magnitude < BitsOf<f32>::exponent;
    return canonical(a * (huge ? real_of<f32>(bits_of(b) & BitsOf<f32>::sign) : 1.0f) / (huge ? 1.0f : b));
  }
};
struct DivideFull {
  static SIM_INLINE f32 of(f32 a, f32 b) { return canonical(a / b); }
};

template <class F, bool Ftz> void one(Warp& w, const Instruction& i, Mask mask) {
  const f32* a = at<f32>(w, i.o[1]);
  each(at<f32>(w, i.o[0]), mask, [=](u32 l) { return flush<Ftz>(F::of(flush<Ftz>(a[l]))); });
}
template <class F, bool Ftz> void divide(Warp& w, const Instruction& i, Mask mask) {
  const f32 *a = at<f32>(w, i.o[1]), *b = at<f32>(w, i.o[2]);
  each(at<f32>(w, i.o[0]), mask, [=](u32 l) {
    const f32 x = flush<Ftz>(a[l]), y = flush<Ftz>(b[l]);
    return flush_if(Ftz && tiny_quotient(x, y), F::of(x, y));
  });
}

// The .ftz forms of f64 read only the upper half of the operand and write only that of the result.
template <class F> void upper(Warp& w, const Instruction& i, Mask mask) {
  const u64* a = at<u64>(w, i.o[1]);
  each(at<u64>(w, i.o[0]), mask, [=](u32 l) {
    const f64 r = F::of(flush<true>(std::bit_cast<f64>(a[l] & 0xffffffff00000000ull)));
    return std::bit_cast<u64>(flush<true>(r)) & 0xffffffff00000000ull;
  });
}
struct Rcp64 {
  static SIM_INLINE f64 of(f64 a) { return 1.0 / a; }
};
struct Rsqrt64 {
  static SIM_INLINE f64 of(f64 a) { return 1.0 / std::sqrt(a); }
};

template <class F> void add_both(Table& t, const std::string& name) {
  t.add(name + ".approx.f32", one<F, false>);
  t.add(name + ".approx.ftz.f32", one<F, true>);
}

}  // namespace

void add_approximate(Table& t) {
  add_both<Ex2>(t, "ex2");
  add_both<Lg2>(t, "lg2");
  add_both<Sine<0>>(t, "sin");
  add_both<Sine<1>>(t, "cos");
  t.add("tanh.approx.f32", one<Tanh, false>);
  add_both<Rcp>(t, "rcp");
  add_both<Sqrt>(t, "sqrt");
  add_both<Rsqrt>(t, "rsqrt");
  t.add("div.approx.f32", divide<Divide, false>);
  t.add("div.approx.ftz.f32", divide<Divide, true>);
  t.add("div.full.f32", divide<DivideFull, false>);
  t.add("div.full.ftz.f32", divide<DivideFull, true>);
  t.add("rcp.approx.ftz.f64", upper<Rcp64>);
  t.add("rsqrt.approx.ftz.f64", upper<Rsqrt64>);
  t.add("rsqrt.approx.f64", unary<Rsqrt64::of, f64, f64>);
}

}  // namespace sim::SIM_TARGET
