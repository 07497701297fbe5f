// cvt in all its forms. 8-bit operands have slots of one byte per lane; the decoder puts them there. sim: multiversion
#include "engine/isa/half_lanes.h"

namespace sim::SIM_TARGET {
namespace {

template <class D, class S> constexpr auto plain = [](S a) { return static_cast<D>(a); };
template <class D, class S> constexpr auto saturating = [](S a) {
  using L = std::numeric_limits<D>;
  if (std::is_signed_v<S> && a < 0) {
    if (!std::is_signed_v<D>) return D{0};
    return static_cast<s64>(a) < static_cast<s64>(L::min()) ? L::min() : static_cast<D>(a);
  }
  return static_cast<u64>(a) > static_cast<u64>(L::max()) ? L::max() : static_cast<D>(a);
};

template <Round R, class T> SIM_INLINE T to_integral(T v) {
  switch (R) {
    case Round::near: return std::rint(v);
    case Round::zero: return std::trunc(v);
    case Round::down: return std::floor(v);
    default: return std::ceil(v);
  }
}

// Saturates. NaN is 0, but with 64 bits on either side the top bit alone.
template <class D, class S, Round R> SIM_INLINE D real_to_integer(S a) {
  using L = std::numeric_limits<D>;
  constexpr S low = static_cast<S>(L::min());
  constexpr S above = static_cast<S>(u64{1} << (8 * sizeof(D) - 1)) * (std::is_signed_v<D> ? S{1} : S{2});
  const S v = to_integral<R>(a);
  const bool inside = (v >= low) & (v < above);
  using Middle = std::conditional_t<sizeof(D) < 4, s32, D>;
  const D cast = static_cast<D>(static_cast<Middle>(inside ? v : S{0}));
  constexpr D nan = sizeof(S) == 8 || sizeof(D) == 8 ? static_cast<D>(u64{1} << (8 * sizeof(D) - 1)) : D{0};
  return inside ? cast : a != a ? nan : v < low ? L::min() : L::max();
}

// To a half in any direction.
template <class H, Round R> SIM_INLINE u16 narrow_to(f32 v) {
  const u16 cut = H::template narrow<R != Round::near>(v);
  if constexpr (R == Round::near || R == Round::zero) return cut;
  const f32 back = H::widen(cut);
  return (R == Round::up ? back < v : back > v) ? static_cast<u16>(cut + 1) : cut;
}

// As `each`, for handlers of which there are hundreds: they share the loops that write.
template <class D> [[gnu::noinline]] void write(D* d, Mask mask, const D* value) {
  each(d, mask, [=](u32 l) { return value[l]; });
}
template <class D, class F> SIM_INLINE void each_apart(D* d, Mask mask, F f) {
  alignas(64) D value[lane_count];
#pragma GCC ivdep
  for (u32 l = 0; l < lane_count; ++l) value[l] = f(l);
  write(d, mask, value);
}

template <class D, class S, Round R, bool Ftz> void float_to_int(Warp& w, const Instruction& i, Mask mask) {
  const S* a = at<S>(w, i.o[1]);
  each_apart(at<D>(w, i.o[0]), mask, [=](u32 l) { return real_to_integer<D, S, R>(flush<Ftz>(a[l])); });
}
template <class D, class H, Round R> void half_to_int(Warp& w, const Instruction& i, Mask mask) {
  const u16* a = at<u16>(w, i.o[1]);
  each_apart(at<D>(w, i.o[0]), mask, [=](u32 l) { return real_to_integer<D, f32, R>(H::widen(a[l])); });
}
template <class D, class S, Round R, bool Sat> void int_to_float(Warp& w, const Instruction& i, Mask mask) {
  const S* a = at<S>(w, i.o[1]);
  const Rounding<R> rounding;
  each(at<D>(w, i.o[0]), mask, [=](u32 l) {
    return saturate<Sat>(static_cast<D>(static_cast<std::conditional_t<sizeof(S) < 4, s32, S>>(a[l])));
  });
}
// What a double holds of an integer, with all that decides later roundings: of 64 bits, the lowest 12 become one.
template <class S> SIM_INLINE S shortened(S a) {
  if constexpr (sizeof(S) < 8) return a;
  const u64 size = a < 0 ? u64{0} - static_cast<u64>(a) : static_cast<u64>(a);
  const u64 odd = size >> 53 ? (size & ~u64{0xfff}) | (size & 0xfff ? u64{0x1000} : 0) : size;
  return static_cast<S>(a < 0 ? u64{0} - odd : odd);
}
template <class H, class S, Round R> void int_to_half(Warp& w, const Instruction& i, Mask mask) {
  const S* a = at<S>(w, i.o[1]);
  each_apart(at<u16>(w, i.o[0]), mask,
             [=](u32 l) { return narrow_to<H, R>(to_odd(static_cast<f64>(shortened(a[l])))); });
}

template <class D, class S, Round R, bool Ftz, bool Sat> void float_to_float(Warp& w, const Instruction& i, Mask mask) {
  const S* a = at<S>(w, i.o[1]);
  const Rounding<R> rounding;
  each(at<D>(w, i.o[0]), mask, [=](u32 l) {
    const S v = flush < Ftz && sizeof(S) == 4 > (a[l]);
    const D r = canonical(static_cast<D>(v));
    return saturate<Sat>(flush_if(Ftz && sizeof(D) == 4 && tiny_scaled(static_cast<f32>(v * S(0x1p64))), r));
  });
}
template <class T, Round R, bool Ftz, bool Sat> void to_whole(Warp& w, const Instruction& i, Mask mask) {
  const T* a = at<T>(w, i.o[1]);
  each(at<T>(w, i.o[0]), mask,
       [=](u32 l) { return saturate<Sat>(flush<Ftz>(canonical(to_integral<R>(flush<Ftz>(a[l]))))); });
}

template <class H, class D, bool Ftz, bool Sat> void from_half(Warp& w, const Instruction& i, Mask mask) {
  const u16* a = at<u16>(w, i.o[1]);
  each(at<D>(w, i.o[0]), mask,
       [=](u32 l) { return saturate<Sat>(flush<Ftz>(canonical(static_cast<D>(H::widen(a[l]))))); });
}
template <class H, bool Sat, bool Relu> SIM_INLINE u16 finish(u16 v) {
  const bool nan = (v & 0x7fff) > H::infinity;
  if (Sat) return nan || v & H::sign ? u16{0} : v > H::one ? H::one : v;
  if (Relu) return !nan && v & H::sign ? u16{0} : v;
  return v;
}
template <class H, class S, Round R, bool Ftz, bool Sat, bool Relu> void to_half(Warp& w, const Instruction& i,
                                                                                 Mask mask) {
  const S* a = at<S>(w, i.o[1]);
  each(at<u16>(w, i.o[0]), mask, [=](u32 l) {
    const f32 v = sizeof(S) == 8 ? to_odd(static_cast<f64>(a[l])) : static_cast<f32>(a[l]);
    return finish<H, Sat, Relu>(narrow_to<H, R>(flush<Ftz>(v)));
  });
}
template <class H, class G, Round R, bool Relu> void half_to_half(Warp& w, const Instruction& i, Mask mask) {
  const u16* a = at<u16>(w, i.o[1]);
  each(at<u16>(w, i.o[0]), mask, [=](u32 l) { return finish<H, false, Relu>(narrow_to<H, R>(G::widen(a[l]))); });
}
template <class H, Round R> void half_to_whole(Warp& w, const Instruction& i, Mask mask) {
  const u16* a = at<u16>(w, i.o[1]);
  each(at<u16>(w, i.o[0]), mask, [=](u32 l) { return H::template narrow<>(to_integral<R>(H::widen(a[l]))); });
}
// Two floats into one register: the first is the upper half.
template <class H, Round R, bool Relu> void to_pair(Warp& w, const Instruction& i, Mask mask) {
  const f32 *a = at<f32>(w, i.o[1]), *b = at<f32>(w, i.o[2]);
  each(at<u32>(w, i.o[0]), mask, [=](u32 l) {
    const u32 high = finish<H, false, Relu>(narrow_to<H, R>(a[l]));
    return high << 16 | finish<H, false, Relu>(narrow_to<H, R>(b[l]));
  });
}
// To nearest, ties away from zero, 10 bits of fraction kept.
void to_tf32(Warp& w, const Instruction& i, Mask mask) {
  const f32* a = at<f32>(w, i.o[1]);
  each(at<u32>(w, i.o[0]), mask, [=](u32 l) {
    const u32 b = bits_of(a[l]);
    return a[l] == a[l] ? ((b & BitsOf<f32>::exponent) == BitsOf<f32>::exponent ? b : (b + 0x1000) & 0xffffe000)
                        : 0x7fffffffu;
  });
}

// Not vectorised: g++ 12 fails on masked byte maxima for AVX-512.
template <auto F, class D, class A> void one_by_one(Warp& w, const Instruction& i, Mask mask) {
  const A* a = at<A>(w, i.o[1]);
  D* d = at<D>(w, i.o[0]);
  for (Mask m = mask; m; m &= m - 1) {
    const auto l = static_cast<u32>(std::countr_zero(m));
    d[l] = F(a[l]);
  }
}

constexpr const char* integral_name(Round r) {
  return r == Round::near ? ".rni" : r == Round::zero ? ".rzi" : r == Round::down ? ".rmi" : ".rpi";
}
constexpr const char* explicit_name(Round r) {
  return r == Round::near ? ".rn" : r == Round::zero ? ".rz" : r == Round::down ? ".rm" : ".rp";
}
template <class D, class S> std::string types() { return std::string(".") + name_of<D>() + "." + name_of<S>(); }

template <class D, Round R> [[gnu::cold]] void add_to_int(Table& t) {
  const std::string r = std::string("cvt") + integral_name(R);
  for (const char* sat : {"", ".sat"}) {
    t.add(r + sat + types<D, f32>(), float_to_int<D, f32, R, false>);
    t.add(r + ".ftz" + sat + types<D, f32>(), float_to_int<D, f32, R, true>);
    t.add(r + sat + types<D, f64>(), float_to_int<D, f64, R, false>);
    t.add(r + sat + "." + name_of<D>() + ".f16", half_to_int<D, Half, R>);
    t.add(r + sat + "." + name_of<D>() + ".bf16", half_to_int<D, Brain, R>);
  }
}
template <class S, Round R> [[gnu::cold]] void add_from_int(Table& t) {
  const std::string r = std::string("cvt") + explicit_name(R);
  t.add(r + types<f32, S>(), int_to_float<f32, S, R, false>);
  t.add(r + ".sat" + types<f32, S>(), int_to_float<f32, S, R, true>);
  t.add(r + types<f64, S>(), int_to_float<f64, S, R, false>);
  t.add(r + ".f16." + name_of<S>(), int_to_half<Half, S, R>);
  if constexpr (R == Round::near || R == Round::zero) t.add(r + ".bf16." + name_of<S>(), int_to_half<Brain, S, R>);
}
template <class D, class... S> [[gnu::cold]] void add_int_to_int(Table& t) {
  (t.add("cvt" + types<D, S>(), unary<plain<D, S>, D, S>), ...);
  (t.add("cvt.sat" + types<D, S>(), one_by_one<saturating<D, S>, D, S>), ...);
}
template <class T> [[gnu::cold]] void add_integer_type(Table& t) {
  add_int_to_int<T, u8, s8, u16, s16, u32, s32, u64, s64>(t);
  add_to_int<T, Round::near>(t);
  add_to_int<T, Round::zero>(t);
  add_to_int<T, Round::down>(t);
  add_to_int<T, Round::up>(t);
  add_from_int<T, Round::near>(t);
  add_from_int<T, Round::zero>(t);
  add_from_int<T, Round::down>(t);
  add_from_int<T, Round::up>(t);
}

template <Round R> [[gnu::cold]] void add_real_rounding(Table& t) {
  const std::string r = std::string("cvt") + explicit_name(R), w = std::string("cvt") + integral_name(R);
  t.add(r + ".f32.f64", float_to_float<f32, f64, R, false, false>);
  t.add(r + ".ftz.f32.f64", float_to_float<f32, f64, R, true, false>);
  t.add(r + ".sat.f32.f64", float_to_float<f32, f64, R, false, true>);
  t.add(w + ".f32.f32", to_whole<f32, R, false, false>);
  t.add(w + ".ftz.f32.f32", to_whole<f32, R, true, false>);
  t.add(w + ".sat.f32.f32", to_whole<f32, R, false, true>);
  t.add(w + ".ftz.sat.f32.f32", to_whole<f32, R, true, true>);
  t.add(w + ".f64.f64", to_whole<f64, R, false, false>);
  t.add(w + ".f16.f16", half_to_whole<Half, R>);
  t.add(w + ".bf16.bf16", half_to_whole<Brain, R>);
}
template <class H, Round R> [[gnu::cold]] void add_to_half(Table& t) {
  const std::string r = std::string("cvt") + explicit_name(R), n = std::string(".") + H::name;
  t.add(r + n + ".f32", to_half<H, f32, R, false, false, false>);
  t.add(r + ".ftz" + n + ".f32", to_half<H, f32, R, true, false, false>);
  t.add(r + ".sat" + n + ".f32", to_half<H, f32, R, false, true, false>);
  t.add(r + ".relu" + n + ".f32", to_half<H, f32, R, false, false, true>);
  t.add(r + n + ".f64", to_half<H, f64, R, false, false, false>);
  t.add(r + n + "x2.f32", to_pair<H, R, false>);
  t.add(r + ".relu" + n + "x2.f32", to_pair<H, R, true>);
  t.add(r + n + ".f16", half_to_half<H, Half, R, false>);
  t.add(r + n + ".bf16", half_to_half<H, Brain, R, false>);
}
template <class H> [[gnu::cold]] void add_from_half(Table& t) {
  const std::string n = std::string(".") + H::name;
  t.add("cvt.f32" + n, from_half<H, f32, false, false>);
  t.add("cvt.ftz.f32" + n, from_half<H, f32, true, false>);
  t.add("cvt.sat.f32" + n, from_half<H, f32, false, true>);
  t.add("cvt.f64" + n, from_half<H, f64, false, false>);
}

}  // namespace

[[gnu::cold]] void add_convert(Table& t) {
  add_integer_type<u8>(t);
  add_integer_type<s8>(t);
  add_integer_type<u16>(t);
  add_integer_type<s16>(t);
  add_integer_type<u32>(t);
  add_integer_type<s32>(t);
  add_integer_type<u64>(t);
  add_integer_type<s64>(t);
  add_real_rounding<Round::near>(t);
  add_real_rounding<Round::zero>(t);
  add_real_rounding<Round::down>(t);
  add_real_rounding<Round::up>(t);
  add_to_half<Half, Round::near>(t);
  add_to_half<Half, Round::zero>(t);
  add_to_half<Half, Round::down>(t);
  add_to_half<Half, Round::up>(t);
  add_to_half<Brain, Round::near>(t);
  add_to_half<Brain, Round::zero>(t);
  add_from_half<Half>(t);
  add_from_half<Brain>(t);
  t.add("cvt.f64.f32", float_to_float<f64, f32, Round::near, false, false>);
  t.add("cvt.ftz.f64.f32", float_to_float<f64, f32, Round::near, true, false>);
  t.add("cvt.f32.f32", float_to_float<f32, f32, Round::near, false, false>);
  t.add("cvt.ftz.f32.f32", float_to_float<f32, f32, Round::near, true, false>);
  t.add("cvt.sat.f32.f32", float_to_float<f32, f32, Round::near, false, true>);
  t.add("cvt.ftz.sat.f32.f32", float_to_float<f32, f32, Round::near, true, true>);
  t.add("cvt.f64.f64", float_to_float<f64, f64, Round::near, false, false>);
  t.add("cvt.sat.f64.f64", float_to_float<f64, f64, Round::near, false, true>);
  t.add("cvt.rna.tf32.f32", to_tf32);
}

}  // namespace sim::SIM_TARGET
