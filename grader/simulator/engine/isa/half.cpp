// Half and bfloat16 arithmetic, single and in pairs. sim: multiversion
#include "engine/isa/half_lanes.h"

namespace sim::SIM_TARGET {
namespace {

template <class H, bool Ftz> SIM_INLINE u16 flushed(u16 v) {
  return Ftz && (v & H::infinity) == 0 ? static_cast<u16>(v & H::sign) : v;
}
template <class H, bool Sat> SIM_INLINE u16 clamped(u16 v) {
  if (!Sat) return v;
  const bool nan = (v & 0x7fff) > H::infinity;
  return nan || v & H::sign ? u16{0} : v > H::one ? H::one : v;
}

// Of a value that is exact or rounded to odd.
template <class H, bool Ftz> SIM_INLINE u16 rounded(f32 v) {
  return H::template narrow<>(Ftz && std::fabs(v) < H::tiny ? std::copysign(0.0f, v) : v);
}

// Single precision holds sum, difference, product and quotient of two halves closely enough that rounding twice is
// rounding once; with bfloat16 the exponents may lie too far apart, so sums go through double.
struct Add {
  template <class H, bool Ftz> static SIM_INLINE u16 of(u16 a, u16 b) {
    return rounded<H, Ftz>(to_odd(sum_to_odd(H::widen(a), H::widen(b))));
  }
};
struct Sub {
  template <class H, bool Ftz> static SIM_INLINE u16 of(u16 a, u16 b) {
    return Add::of<H, Ftz>(a, static_cast<u16>((b & 0x7fff) > H::infinity ? b : b ^ H::sign));
  }
};
struct Mul {
  template <class H, bool Ftz> static SIM_INLINE u16 of(u16 a, u16 b) {
    return rounded<H, Ftz>(to_odd(static_cast<f64>(H::widen(a)) * H::widen(b)));
  }
};
struct Fma {
  template <class H, bool Ftz> static SIM_INLINE u16 of(u16 a, u16 b, u16 c) {
    return rounded<H, Ftz>(to_odd(sum_to_odd(static_cast<f64>(H::widen(a)) * H::widen(b), H::widen(c))));
  }
};

template <bool Max, bool Nan, bool XorSign> struct Extremum {
  template <class H, bool> static SIM_INLINE u16 of(u16 a, u16 b) {
    const u16 sign = static_cast<u16>((a ^ b) & H::sign);
    if (XorSign) {
      a &= 0x7fff;
      b &= 0x7fff;
    }
    const bool a_nan = (a & 0x7fff) > H::infinity, b_nan = (b & 0x7fff) > H::infinity;
    // Order of the patterns as signed magnitudes, -0 below +0.
    const s32 x = a & H::sign ? -s32(a & 0x7fff) - 1 : s32(a), y = b & H::sign ? -s32(b & 0x7fff) - 1 : s32(b);
    const u16 chosen = (Max ? x > y : x < y) ? a : b;
    const u16 r = (a_nan && b_nan) || (Nan && (a_nan || b_nan)) ? H::nan : a_nan ? b : b_nan ? a : chosen;
    return XorSign && (r & 0x7fff) <= H::infinity ? static_cast<u16>(r | sign) : r;
  }
};

struct Neg {
  template <class H, bool> static SIM_INLINE u16 of(u16 a) { return a ^ H::sign; }
};
struct Abs {
  template <class H, bool> static SIM_INLINE u16 of(u16 a) { return a & 0x7fff; }
};
struct Exp2 {
  template <class H, bool Ftz> static SIM_INLINE u16 of(u16 a) { return rounded<H, Ftz>(std::exp2(H::widen(a))); }
};
struct Tanh {
  template <class H, bool> static SIM_INLINE u16 of(u16 a) { return H::template narrow<>(std::tanh(H::widen(a))); }
};

// Pairs: F for both halves of a register.
template <class F, class... A> SIM_INLINE u32 both(F f, A... a) {
  return f(static_cast<u16>(a)...) | static_cast<u32>(f(static_cast<u16>(a >> 16)...)) << 16;
}

template <class Op, class H, bool Ftz, bool Sat> constexpr auto two = [](u16 a, u16 b) {
  return clamped<H, Sat>(Op::template of<H, Ftz>(flushed<H, Ftz>(a), flushed<H, Ftz>(b)));
};
template <class H, bool Ftz, bool Sat, bool Relu> constexpr auto three = [](u16 a, u16 b, u16 c) {
  const u16 r = clamped<H, Sat>(Fma::of<H, Ftz>(flushed<H, Ftz>(a), flushed<H, Ftz>(b), flushed<H, Ftz>(c)));
  return Relu && r & H::sign && (r & 0x7fff) <= H::infinity ? u16{0} : r;
};
template <class Op, class H, bool Ftz> constexpr auto one = [](u16 a) {
  return Op::template of<H, Ftz>(flushed<H, Ftz>(a));
};

template <auto F> constexpr auto pair2 = [](u32 a, u32 b) { return both(F, a, b); };
template <auto F> constexpr auto pair3 = [](u32 a, u32 b, u32 c) { return both(F, a, b, c); };
template <auto F> constexpr auto pair1 = [](u32 a) { return both(F, a); };

template <class Op, class H, bool Ftz, bool Sat> void add_two(Table& t, const std::string& name) {
  t.add(name + "." + H::name, binary<two<Op, H, Ftz, Sat>, u16, u16>);
  t.add(name + "." + H::name + "x2", binary<pair2<two<Op, H, Ftz, Sat>>, u32, u32>);
}
template <class Op, class H, bool Ftz> void add_one(Table& t, const std::string& name) {
  t.add(name + "." + H::name, unary<one<Op, H, Ftz>, u16, u16>);
  t.add(name + "." + H::name + "x2", unary<pair1<one<Op, H, Ftz>>, u32, u32>);
}
template <class H, bool Ftz, bool Sat, bool Relu> void add_three(Table& t, const std::string& name) {
  t.add(name + "." + H::name, ternary<three<H, Ftz, Sat, Relu>, u16, u16>);
  t.add(name + "." + H::name + "x2", ternary<pair3<three<H, Ftz, Sat, Relu>>, u32, u32>);
}

template <class H, bool Ftz> void add_type(Table& t) {
  const std::string z = Ftz ? ".ftz" : "";
  add_two<Add, H, Ftz, false>(t, "add" + z);
  add_two<Sub, H, Ftz, false>(t, "sub" + z);
  add_two<Mul, H, Ftz, false>(t, "mul" + z);
  add_two<Add, H, Ftz, true>(t, "add" + z + ".sat");
  add_two<Sub, H, Ftz, true>(t, "sub" + z + ".sat");
  add_two<Mul, H, Ftz, true>(t, "mul" + z + ".sat");
  add_three<H, Ftz, false, false>(t, "fma" + z);
  add_three<H, Ftz, true, false>(t, "fma" + z + ".sat");
  add_three<H, Ftz, false, true>(t, "fma" + z + ".relu");
  add_two<Extremum<false, false, false>, H, Ftz, false>(t, "min" + z);
  add_two<Extremum<true, false, false>, H, Ftz, false>(t, "max" + z);
  add_two<Extremum<false, true, false>, H, Ftz, false>(t, "min" + z + ".NaN");
  add_two<Extremum<true, true, false>, H, Ftz, false>(t, "max" + z + ".NaN");
  add_two<Extremum<false, false, true>, H, Ftz, false>(t, "min" + z + ".xorsign.abs");
  add_two<Extremum<true, false, true>, H, Ftz, false>(t, "max" + z + ".xorsign.abs");
  add_one<Neg, H, Ftz>(t, "neg" + z);
  add_one<Abs, H, Ftz>(t, "abs" + z);
  if constexpr (!Ftz) add_one<Tanh, H, Ftz>(t, "tanh.approx");
}

}  // namespace

void add_half(Table& t) {
  add_type<Half, false>(t);
  add_type<Half, true>(t);
  add_type<Brain, false>(t);
  add_one<Exp2, Half, false>(t, "ex2.approx");
  add_one<Exp2, Brain, true>(t, "ex2.approx.ftz");
}

}  // namespace sim::SIM_TARGET
