// Integer arithmetic. sim: multiversion
#include "engine/isa/lanes.h"

namespace sim::SIM_TARGET {
namespace {

template <class T> using Unsigned = std::make_unsigned_t<T>;
template <class T> struct WiderOf;
template <> struct WiderOf<u16> {
  using type = u32;
};
template <> struct WiderOf<s16> {
  using type = s32;
};
template <> struct WiderOf<u32> {
  using type = u64;
};
template <> struct WiderOf<s32> {
  using type = s64;
};
template <> struct WiderOf<u64> {
  using type = unsigned __int128;
};
template <> struct WiderOf<s64> {
  using type = __int128;
};
template <class T> using Wider = typename WiderOf<T>::type;

// Wrapping: computed unsigned, in at least 32 bits so that no promotion to int can overflow.
template <class T> using Wrap = std::conditional_t<sizeof(T) < 4, u32, Unsigned<T>>;

template <class T> constexpr auto add = [](T a, T b) { return static_cast<T>(Wrap<T>(a) + Wrap<T>(b)); };
template <class T> constexpr auto sub = [](T a, T b) { return static_cast<T>(Wrap<T>(a) - Wrap<T>(b)); };
template <class T> constexpr auto mul_lo = [](T a, T b) { return static_cast<T>(Wrap<T>(a) * Wrap<T>(b)); };
template <class T> constexpr auto mul_hi = [](T a, T b) {
  return static_cast<T>((Wider<T>(a) * Wider<T>(b)) >> (8 * sizeof(T)));
};
template <class T> constexpr auto mul_wide = [](T a, T b) { return Wider<T>(a) * Wider<T>(b); };
template <class T> constexpr auto mad_lo = [](T a, T b, T c) {
  return static_cast<T>(Wrap<T>(a) * Wrap<T>(b) + Wrap<T>(c));
};
template <class T> constexpr auto mad_hi = [](T a, T b, T c) { return add<T>(mul_hi<T>(a, b), c); };
template <class T> constexpr auto mad_wide = [](T a, T b, Wider<T> c) {
  return add<Wider<T>>(Wider<T>(a) * Wider<T>(b), c);
};
constexpr auto mul24_lo_s32 = [](s32 a, s32 b) { return static_cast<s32>((s64(a << 8 >> 8) * (b << 8 >> 8))); };
constexpr auto mul24_lo_u32 = [](u32 a, u32 b) { return (a & 0xffffff) * (b & 0xffffff); };
constexpr auto mul24_hi_s32 = [](s32 a, s32 b) { return static_cast<s32>((s64(a << 8 >> 8) * (b << 8 >> 8)) >> 16); };
constexpr auto mul24_hi_u32 = [](u32 a, u32 b) { return static_cast<u32>((u64(a & 0xffffff) * (b & 0xffffff)) >> 16); };

// The hardware gives all ones for a division by zero, and the most negative number over -1 wraps.
template <class T> constexpr auto div = [](T a, T b) {
  if (b == 0) return static_cast<T>(~T{0});
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return sub<T>(0, a);
  return static_cast<T>(a / b);
};
template <class T> constexpr auto rem = [](T a, T b) {
  if (b == 0) return a;
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return T{0};
  return static_cast<T>(a % b);
};
template <class T> constexpr auto smaller = [](T a, T b) { return a < b ? a : b; };
template <class T> constexpr auto larger = [](T a, T b) { return a > b ? a : b; };
template <class T> constexpr auto magnitude = [](T a) { return a < 0 ? sub<T>(0, a) : a; };
template <class T> constexpr auto negate = [](T a) { return sub<T>(0, a); };
template <class T> constexpr auto sad = [](T a, T b, T c) { return add<T>(c, a < b ? sub<T>(b, a) : sub<T>(a, b)); };
constexpr auto add_sat = [](s32 a, s32 b) {
  const s64 r = s64(a) + b;
  return static_cast<s32>(r > INT32_MAX ? INT32_MAX : r < INT32_MIN ? INT32_MIN : r);
};
constexpr auto sub_sat = [](s32 a, s32 b) {
  const s64 r = s64(a) - b;
  return static_cast<s32>(r > INT32_MAX ? INT32_MAX : r < INT32_MIN ? INT32_MIN : r);
};
constexpr auto mad_hi_sat = [](s32 a, s32 b, s32 c) { return add_sat(mul_hi<s32>(a, b), c); };

// Two or four small integers in one register.
template <class Part, auto F> constexpr auto packed = [](u32 a, u32 b) {
  u32 result = 0;
  for (unsigned shift = 0; shift < 32; shift += 8 * sizeof(Part)) {
    const auto r = F(static_cast<Part>(a >> shift), static_cast<Part>(b >> shift));
    result |= static_cast<u32>(static_cast<Unsigned<Part>>(r)) << shift;
  }
  return result;
};

// vabsdiff: the differences of the parts, or their sum and c.
template <class Part, bool Sum> constexpr auto differences = [](u32 a, u32 b, u32 c) {
  u32 parts = 0, sum = c;
  for (unsigned shift = 0; shift < 32; shift += 8 * sizeof(Part)) {
    const u32 x = static_cast<Part>(a >> shift), y = static_cast<Part>(b >> shift), apart = x < y ? y - x : x - y;
    parts |= apart << shift;
    sum += apart;
  }
  return Sum ? sum : parts;
};

template <class A, class B> constexpr auto dp4a = [](u32 a, u32 b, u32 c) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    c += static_cast<u32>(s32(static_cast<A>(a >> shift)) * s32(static_cast<B>(b >> shift)));
  }
  return c;
};
template <class A, class B, class HalfA, unsigned Half> constexpr auto dp2a = [](u32 a, u32 b, u32 c) {
  for (unsigned n = 0; n < 2; ++n) {
    c += static_cast<u32>(s32(static_cast<HalfA>(a >> 16 * n)) * s32(static_cast<B>(b >> 8 * (n + 2 * Half))));
  }
  return c;
};

template <class T> void add_type(Table& t) {
  const std::string n = name_of<T>();
  t.add("add." + n, binary<add<T>, T, T>);
  t.add("sub." + n, binary<sub<T>, T, T>);
  t.add("mul.lo." + n, binary<mul_lo<T>, T, T>);
  t.add("mul.hi." + n, binary<mul_hi<T>, T, T>);
  t.add("mad.lo." + n, ternary<mad_lo<T>, T, T>);
  t.add("mad.hi." + n, ternary<mad_hi<T>, T, T>);
  t.add("div." + n, binary<div<T>, T, T>);
  t.add("rem." + n, binary<rem<T>, T, T>);
  t.add("min." + n, binary<smaller<T>, T, T>);
  t.add("max." + n, binary<larger<T>, T, T>);
  t.add("sad." + n, ternary<sad<T>, T, T>);
  if constexpr (sizeof(T) < 8) {
    t.add("mul.wide." + n, binary<mul_wide<T>, Wider<T>, T>);
    t.add("mad.wide." + n, ternary<mad_wide<T>, Wider<T>, T, T, Wider<T>>);
  }
  if constexpr (std::is_signed_v<T>) {
    t.add("abs." + n, unary<magnitude<T>, T, T>);
    t.add("neg." + n, unary<negate<T>, T, T>);
  }
}

template <class A, class B> void add_dot(Table& t) {
  const std::string n = std::string(std::is_signed_v<A> ? "s32." : "u32.") + (std::is_signed_v<B> ? "s32" : "u32");
  using HalfA = std::conditional_t<std::is_signed_v<A>, s16, u16>;
  t.add("dp4a." + n, ternary<dp4a<A, B>, u32, u32>);
  t.add("dp2a.lo." + n, ternary<dp2a<A, B, HalfA, 0>, u32, u32>);
  t.add("dp2a.hi." + n, ternary<dp2a<A, B, HalfA, 1>, u32, u32>);
}

}  // namespace

void add_integer(Table& t) {
  add_type<u16>(t);
  add_type<s16>(t);
  add_type<u32>(t);
  add_type<s32>(t);
  add_type<u64>(t);
  add_type<s64>(t);
  add_dot<u8, u8>(t);
  add_dot<u8, s8>(t);
  add_dot<s8, u8>(t);
  add_dot<s8, s8>(t);
  t.add("add.sat.s32", binary<add_sat, s32, s32>);
  t.add("sub.sat.s32", binary<sub_sat, s32, s32>);
  t.add("mad.hi.sat.s32", ternary<mad_hi_sat, s32, s32>);
  t.add("mul24.lo.s32", binary<mul24_lo_s32, s32, s32>);
  t.add("mul24.lo.u32", binary<mul24_lo_u32, u32, u32>);
  t.add("mul24.hi.s32", binary<mul24_hi_s32, s32, s32>);
  t.add("mul24.hi.u32", binary<mul24_hi_u32, u32, u32>);
  t.add("mad24.lo.s32", ternary<[](s32 a, s32 b, s32 c) { return add<s32>(mul24_lo_s32(a, b), c); }, s32, s32>);
  t.add("mad24.lo.u32", ternary<[](u32 a, u32 b, u32 c) { return mul24_lo_u32(a, b) + c; }, u32, u32>);
  t.add("vabsdiff2.u32.u32.u32", ternary<differences<u16, false>, u32, u32>);
  t.add("vabsdiff2.u32.u32.u32.add", ternary<differences<u16, true>, u32, u32>);
  t.add("vabsdiff4.u32.u32.u32", ternary<differences<u8, false>, u32, u32>);
  t.add("vabsdiff4.u32.u32.u32.add", ternary<differences<u8, true>, u32, u32>);
  t.add("add.u16x2", binary<packed<u16, add<u16>>, u32, u32>);
  t.add("add.s16x2", binary<packed<s16, add<s16>>, u32, u32>);
  t.add("min.u16x2", binary<packed<u16, smaller<u16>>, u32, u32>);
  t.add("min.s16x2", binary<packed<s16, smaller<s16>>, u32, u32>);
  t.add("max.u16x2", binary<packed<u16, larger<u16>>, u32, u32>);
  t.add("max.s16x2", binary<packed<s16, larger<s16>>, u32, u32>);
}

}  // namespace sim::SIM_TARGET
