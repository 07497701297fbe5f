// Single and double precision, exact to IEEE 754. sim: multiversion
#include "engine/isa/real_lanes.h"

namespace sim::SIM_TARGET {
namespace {

struct Add {
  template <class T> static SIM_INLINE T of(T a, T b) { return a + b; }
};
struct Sub {
  template <class T> static SIM_INLINE T of(T a, T b) { return a - b; }
};
// Where an operand times 2^64 overflows, the result is not tiny. Sums have no such test: if tiny, they are exact.
struct Mul {
  template <class T> static SIM_INLINE T of(T a, T b) { return a * b; }
  static SIM_INLINE bool tiny(f32 a, f32 b) { return tiny_scaled(a * 0x1p64f * b); }
};
struct Div {
  template <class T> static SIM_INLINE T of(T a, T b) { return a / b; }
  static SIM_INLINE bool tiny(f32 a, f32 b) { return tiny_quotient(a, b); }
};
struct Fma {
  template <class T> static SIM_INLINE T of(T a, T b, T c) { return std::fma(a, b, c); }
  static SIM_INLINE bool tiny(f32 a, f32 b, f32 c) { return tiny_scaled(std::fma(a * 0x1p64f, b, c * 0x1p64f)); }
};
struct Rcp {
  template <class T> static SIM_INLINE T of(T a) { return T{1} / a; }
  static SIM_INLINE bool tiny(f32 a) { return tiny_quotient(1, a); }
};
struct Sqrt {
  template <class T> static SIM_INLINE T of(T a) { return std::sqrt(a); }
};

template <class Op, bool Ftz, class... T> SIM_INLINE auto result(T... o) {
  const auto r = canonical(Op::of(o...));
  if constexpr (Ftz && requires { Op::tiny(o...); }) return flush_if(Op::tiny(o...), r);
  return flush<Ftz>(r);
}
template <class Op, class T, Round R, bool Ftz, bool Sat, class... Operands>
SIM_INLINE void rounded(T* d, Mask mask, const Operands*... o) {
  const Rounding<R> rounding;
  each(d, mask, [=](u32 l) { return saturate<Sat>(result<Op, Ftz>(flush<Ftz>(o[l])...)); });
}
template <class Op, class T, Round R, bool Ftz, bool Sat> void unary_real(Warp& w, const Instruction& i, Mask mask) {
  rounded<Op, T, R, Ftz, Sat>(at<T>(w, i.o[0]), mask, at<T>(w, i.o[1]));
}
template <class Op, class T, Round R, bool Ftz, bool Sat> void binary_real(Warp& w, const Instruction& i, Mask mask) {
  rounded<Op, T, R, Ftz, Sat>(at<T>(w, i.o[0]), mask, at<T>(w, i.o[1]), at<T>(w, i.o[2]));
}
template <class Op, class T, Round R, bool Ftz, bool Sat> void ternary_real(Warp& w, const Instruction& i, Mask mask) {
  rounded<Op, T, R, Ftz, Sat>(at<T>(w, i.o[0]), mask, at<T>(w, i.o[1]), at<T>(w, i.o[2]), at<T>(w, i.o[3]));
}

// A NaN loses against a number; -0 is below +0.
template <bool Max, class T> SIM_INLINE T choose(T a, T b) {
  const T tied =
      real_of<T>(Max ? bits_of(a) & bits_of(b) : bits_of(a) | bits_of(b));  // equal: of zeros, the signs differ
  T r = (Max ? a > b : a < b) ? a : b;
  r = a == b ? tied : r;
  r = b != b ? a : r;
  return canonical(r);
}
template <bool Max, class T, bool Ftz, bool Nan, bool XorSign>
void extremum(Warp& w, const Instruction& i, Mask mask) {
  const T *a = at<T>(w, i.o[1]), *b = at<T>(w, i.o[2]);
  each(at<T>(w, i.o[0]), mask, [=](u32 l) {
    T x = flush<Ftz>(a[l]), y = flush<Ftz>(b[l]);
    const auto sign = (bits_of(x) ^ bits_of(y)) & BitsOf<T>::sign;
    if (XorSign) {
      x = real_of<T>(bits_of(x) & ~BitsOf<T>::sign);
      y = real_of<T>(bits_of(y) & ~BitsOf<T>::sign);
    }
    T r = choose<Max>(x, y);
    if (Nan) r = x != x || y != y ? real_of<T>(BitsOf<T>::nan) : r;
    if (XorSign) r = r != r ? r : real_of<T>(bits_of(r) | sign);
    return r;
  });
}

enum class Sign { clear, flip };
template <class T, Sign S, bool Ftz>
void change_sign(Warp& w, const Instruction& i, Mask mask) {
  const T* a = at<T>(w, i.o[1]);
  each(at<T>(w, i.o[0]), mask, [=](u32 l) {
    const auto b = bits_of(flush<Ftz>(a[l]));
    return real_of<T>(S == Sign::clear ? b & ~BitsOf<T>::sign : b ^ BitsOf<T>::sign);
  });
}
template <class T> void copy_sign(Warp& w, const Instruction& i, Mask mask) {
  using U = Bits<T>;
  const U *a = at<U>(w, i.o[1]), *b = at<U>(w, i.o[2]);
  each(at<U>(w, i.o[0]), mask, [=](u32 l) { return (a[l] & BitsOf<T>::sign) | (b[l] & ~BitsOf<T>::sign); });
}

enum class Class { finite, infinite, number, not_a_number, normal, subnormal };
template <class T, Class C> void test(Warp& w, const Instruction& i, Mask mask) {
  const T* a = at<T>(w, i.o[1]);
  const Mask result = collect([=](u32 l) {
    const auto magnitude = bits_of(a[l]) & ~BitsOf<T>::sign;
    constexpr auto infinity = BitsOf<T>::exponent;
    const bool subnormal = magnitude != 0 && (magnitude & infinity) == 0;
    switch (C) {
      case Class::finite: return magnitude < infinity;
      case Class::infinite: return magnitude == infinity;
      case Class::number: return magnitude <= infinity;
      case Class::not_a_number: return magnitude > infinity;
      case Class::normal: return magnitude < infinity && !subnormal;  // zeros are normal
      default: return subnormal;
    }
  });
  set_predicate(w, i.o[0], result, mask);
}

template <class T, Round R, bool Ftz> void add_rounded(Table& t) {
  const std::string r = round_name(R), z = Ftz ? ".ftz" : "", n = std::string(".") + name_of<T>();
  t.add("add" + r + z + n, binary_real<Add, T, R, Ftz, false>);
  t.add("sub" + r + z + n, binary_real<Sub, T, R, Ftz, false>);
  t.add("mul" + r + z + n, binary_real<Mul, T, R, Ftz, false>);
  t.add("fma" + r + z + n, ternary_real<Fma, T, R, Ftz, false>);
  t.add("mad" + r + z + n, ternary_real<Fma, T, R, Ftz, false>);
  t.add("div" + r + z + n, binary_real<Div, T, R, Ftz, false>);
  t.add("rcp" + r + z + n, unary_real<Rcp, T, R, Ftz, false>);
  t.add("sqrt" + r + z + n, unary_real<Sqrt, T, R, Ftz, false>);
  if constexpr (sizeof(T) == 4) {
    t.add("add" + r + z + ".sat" + n, binary_real<Add, T, R, Ftz, true>);
    t.add("sub" + r + z + ".sat" + n, binary_real<Sub, T, R, Ftz, true>);
    t.add("mul" + r + z + ".sat" + n, binary_real<Mul, T, R, Ftz, true>);
    t.add("fma" + r + z + ".sat" + n, ternary_real<Fma, T, R, Ftz, true>);
  }
}

template <class T, bool Ftz> void add_type(Table& t) {
  add_rounded<T, Round::near, Ftz>(t);
  add_rounded<T, Round::zero, Ftz>(t);
  add_rounded<T, Round::down, Ftz>(t);
  add_rounded<T, Round::up, Ftz>(t);
  const std::string z = Ftz ? ".ftz" : "", n = std::string(".") + name_of<T>();
  t.add("min" + z + n, extremum<false, T, Ftz, false, false>);
  t.add("max" + z + n, extremum<true, T, Ftz, false, false>);
  t.add("neg" + z + n, change_sign<T, Sign::flip, Ftz>);
  t.add("abs" + z + n, change_sign<T, Sign::clear, Ftz>);
  if constexpr (sizeof(T) == 4) {
    t.add("min" + z + ".NaN" + n, extremum<false, T, Ftz, true, false>);
    t.add("max" + z + ".NaN" + n, extremum<true, T, Ftz, true, false>);
    t.add("min" + z + ".xorsign.abs" + n, extremum<false, T, Ftz, false, true>);
    t.add("max" + z + ".xorsign.abs" + n, extremum<true, T, Ftz, false, true>);
    t.add("min" + z + ".NaN.xorsign.abs" + n, extremum<false, T, Ftz, true, true>);
    t.add("max" + z + ".NaN.xorsign.abs" + n, extremum<true, T, Ftz, true, true>);
  }
}

template <class T> void add_tests(Table& t) {
  const std::string n = std::string(".") + name_of<T>();
  t.add("copysign" + n, copy_sign<T>);
  t.add("testp.finite" + n, test<T, Class::finite>);
  t.add("testp.infinite" + n, test<T, Class::infinite>);
  t.add("testp.number" + n, test<T, Class::number>);
  t.add("testp.notanumber" + n, test<T, Class::not_a_number>);
  t.add("testp.normal" + n, test<T, Class::normal>);
  t.add("testp.subnormal" + n, test<T, Class::subnormal>);
}

}  // namespace

void add_real(Table& t) {
  add_type<f32, false>(t);
  add_type<f32, true>(t);
  add_type<f64, false>(t);
  add_tests<f32>(t);
  add_tests<f64>(t);
}

}  // namespace sim::SIM_TARGET
