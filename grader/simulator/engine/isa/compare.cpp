// setp, set, selp, slct. sim: multiversion
#include "engine/isa/half_lanes.h"

namespace sim::SIM_TARGET {
namespace {

struct Eq {
  static constexpr const char* name = "eq";
  template <class T> static SIM_INLINE bool of(T a, T b) { return a == b; }
};
struct Ne {
  static constexpr const char* name = "ne";
  template <class T> static SIM_INLINE bool of(T a, T b) { return (a < b) | (a > b); }
};
struct Lt {
  static constexpr const char* name = "lt";
  template <class T> static SIM_INLINE bool of(T a, T b) { return a < b; }
};
struct Le {
  static constexpr const char* name = "le";
  template <class T> static SIM_INLINE bool of(T a, T b) { return a <= b; }
};
struct Gt {
  static constexpr const char* name = "gt";
  template <class T> static SIM_INLINE bool of(T a, T b) { return a > b; }
};
struct Ge {
  static constexpr const char* name = "ge";
  template <class T> static SIM_INLINE bool of(T a, T b) { return a >= b; }
};
// Unordered: true if an operand is NaN.
struct Equ {
  static constexpr const char* name = "equ";
  template <class T> static SIM_INLINE bool of(T a, T b) { return !((a < b) | (a > b)); }
};
struct Neu {
  static constexpr const char* name = "neu";
  template <class T> static SIM_INLINE bool of(T a, T b) { return !(a == b); }
};
struct Ltu {
  static constexpr const char* name = "ltu";
  template <class T> static SIM_INLINE bool of(T a, T b) { return !(a >= b); }
};
struct Leu {
  static constexpr const char* name = "leu";
  template <class T> static SIM_INLINE bool of(T a, T b) { return !(a > b); }
};
struct Gtu {
  static constexpr const char* name = "gtu";
  template <class T> static SIM_INLINE bool of(T a, T b) { return !(a <= b); }
};
struct Geu {
  static constexpr const char* name = "geu";
  template <class T> static SIM_INLINE bool of(T a, T b) { return !(a < b); }
};
struct Num {
  static constexpr const char* name = "num";
  template <class T> static SIM_INLINE bool of(T a, T b) { return (a == a) & (b == b); }
};
struct Nan {
  static constexpr const char* name = "nan";
  template <class T> static SIM_INLINE bool of(T a, T b) { return (a != a) | (b != b); }
};

// Not inlined: in each of the handlers that share it, the comparison would take most of the time to compile them.
template <class C, class T, bool Ftz> [[gnu::noinline]] Mask compare(const Warp& w, const Instruction& i) {
  const T *a = at<T>(w, i.o[2]), *b = at<T>(w, i.o[3]);
  if constexpr (std::is_floating_point_v<T>) {
    return collect([=](u32 l) { return C::of(flush<Ftz>(a[l]), flush<Ftz>(b[l])); });
  } else {
    return collect([=](u32 l) { return C::of(a[l], b[l]); });
  }
}

// Of halves, or of those of pairs that begin at a bit.
template <class C, class H, bool Ftz, class T> [[gnu::noinline]] Mask compare_half(const Warp& w, const Instruction& i,
                                                                                   u32 shift = 0) {
  const T *a = at<T>(w, i.o[2]), *b = at<T>(w, i.o[3]);
  const auto value = [=](T register_) {
    const u16 h = static_cast<u16>(sizeof(T) > sizeof(u16) ? register_ >> shift : register_);
    return H::widen(Ftz && !(h & H::infinity) ? h & H::sign : h);
  };
  return collect([=](u32 l) { return C::of(value(a[l]), value(b[l])); });
}

// With c: the comparison and the other predicate, combined as `offset` says: 0 none, 1 and, 2 or, 3 xor. o: p, q, a, b,
// c.
enum class Combine : std::int64_t { none, conjunction, disjunction, exclusive };
SIM_INLINE Mask combine(Combine how, Mask result, Mask c) {
  switch (how) {
    case Combine::conjunction: return result & c;
    case Combine::disjunction: return result | c;
    case Combine::exclusive: return result ^ c;
    default: return result;
  }
}

SIM_INLINE void write_both(Warp& w, const Instruction& i, Mask mask, Mask result) {
  const auto how = static_cast<Combine>(i.offset);
  const Mask c = how == Combine::none ? 0 : predicate(w, i.o[4]);
  set_predicate(w, i.o[0], combine(how, result, c), mask);
  if (i.target) set_predicate(w, i.o[1], combine(how, ~result, c), mask);
}

template <class C, class T, bool Ftz> void setp(Warp& w, const Instruction& i, Mask mask) {
  write_both(w, i, mask, compare<C, T, Ftz>(w, i));
}
template <class C, class H, bool Ftz> void setp_half(Warp& w, const Instruction& i, Mask mask) {
  write_both(w, i, mask, compare_half<C, H, Ftz, u16>(w, i));
}
// Of pairs: p is the low halves' result, q the high halves'.
template <class C, class H, bool Ftz> void setp_pair(Warp& w, const Instruction& i, Mask mask) {
  const Mask low = compare_half<C, H, Ftz, u32>(w, i), high = compare_half<C, H, Ftz, u32>(w, i, 16);
  const auto how = static_cast<Combine>(i.offset);
  const Mask c = how == Combine::none ? 0 : predicate(w, i.o[4]);
  set_predicate(w, i.o[0], combine(how, low, c), mask);
  if (i.target) set_predicate(w, i.o[1], combine(how, high, c), mask);
}

// set: all ones, or one in single precision. o: d, (unused), a, b, c as setp.
SIM_INLINE Mask combined(Warp& w, const Instruction& i, Mask result) {
  const auto how = static_cast<Combine>(i.offset);
  return combine(how, result, how == Combine::none ? 0 : predicate(w, i.o[4]));
}
template <class D> [[gnu::noinline]] void answer(Warp& w, const Instruction& i, Mask mask, Mask result, D yes) {
  each(at<D>(w, i.o[0]), mask, [=](u32 l) { return result & lane_bit[l] ? yes : D{0}; });
}
[[gnu::noinline]] void answer_pair(Warp& w, const Instruction& i, Mask mask, Mask low, Mask high, u32 yes) {
  each(at<u32>(w, i.o[0]), mask,
       [=](u32 l) { return (low & lane_bit[l] ? yes : 0) | (high & lane_bit[l] ? yes << 16 : 0); });
}
template <class C, class T, bool Ftz, u32 Yes> void set(Warp& w, const Instruction& i, Mask mask) {
  answer(w, i, mask, combined(w, i, compare<C, T, Ftz>(w, i)), Yes);
}
template <class C, class H, bool Wide> void set_pair(Warp& w, const Instruction& i, Mask mask) {
  const Mask low = combined(w, i, compare_half<C, H, false, u32>(w, i)),
             high = combined(w, i, compare_half<C, H, false, u32>(w, i, 16));
  answer_pair(w, i, mask, low, high, Wide ? 0xffff : H::one);
}
template <class C, class H, class D, D Yes> void set_half(Warp& w, const Instruction& i, Mask mask) {
  answer(w, i, mask, combined(w, i, compare_half<C, H, false, u16>(w, i)), Yes);
}

// A comparison that is observed; see Compared.
template <class T> void observe(Warp& w, const Instruction& i, Mask mask) {
  Compared& c = w.compared[i.place];
  const T *a = at<T>(w, c.a), *b = at<T>(w, c.b);
  const auto first = static_cast<u32>(std::countr_zero(mask));
  const T a_first = a[first], b_first = b[first];
  T a_low = a_first, a_high = a_first, b_low = b_first, b_high = b_first;
  u32 below = 0, above = 0, equal = 0;
  for (u32 l = 0; l < lane_count; ++l) {
    const bool active = mask & lane_bit[l];
    const T x = active ? a[l] : a_first, y = active ? b[l] : b_first;
    a_low = x < a_low ? x : a_low;
    a_high = x > a_high ? x : a_high;
    b_low = y < b_low ? y : b_low;
    b_high = y > b_high ? y : b_high;
    below |= x < y;
    above |= x > y;
    equal |= x == y;
  }
  if (!c.met || a_low < static_cast<T>(c.a_low)) c.a_low = static_cast<s64>(a_low);
  if (!c.met || a_high > static_cast<T>(c.a_high)) c.a_high = static_cast<s64>(a_high);
  if (!c.met || b_low < static_cast<T>(c.b_low)) c.b_low = static_cast<s64>(b_low);
  if (!c.met || b_high > static_cast<T>(c.b_high)) c.b_high = static_cast<s64>(b_high);
  c.met = true;
  c.below |= below != 0;
  c.above |= above != 0;
  c.equal |= equal != 0;
  c.run(w, i, mask);
}

template <class T> void selp(Warp& w, const Instruction& i, Mask mask) {
  const T *a = at<T>(w, i.o[1]), *b = at<T>(w, i.o[2]);
  const Mask p = predicate(w, i.o[3]);
  each(at<T>(w, i.o[0]), mask, [=](u32 l) { return p & lane_bit[l] ? a[l] : b[l]; });
}
template <class T, class C, bool Ftz> void slct(Warp& w, const Instruction& i, Mask mask) {
  const T *a = at<T>(w, i.o[1]), *b = at<T>(w, i.o[2]);
  const C* c = at<C>(w, i.o[3]);
  each(at<T>(w, i.o[0]), mask, [=](u32 l) {
    if constexpr (Ftz)
      return flush<true>(c[l]) >= C{0} ? a[l] : b[l];
    else
      return c[l] >= C{0} ? a[l] : b[l];
  });
}

// Cold, here and elsewhere: it runs once, and to make it fast would take the compiler longer than all handlers.
template <class C, class T, bool Ftz> [[gnu::cold]] void add_one(Table& t, const std::string& type) {
  const std::string name = std::string(".") + C::name + (Ftz ? ".ftz" : "");
  t.add("setp" + name + "." + type, setp<C, T, Ftz>);
  t.add("set" + name + ".u32." + type, set<C, T, Ftz, 0xffffffff>);
  t.add("set" + name + ".s32." + type, set<C, T, Ftz, 0xffffffff>);
  t.add("set" + name + ".f32." + type, set<C, T, Ftz, std::bit_cast<u32>(1.0f)>);
}
template <class T> [[gnu::cold]] void add_ordered(Table& t, const std::string& type) {
  add_one<Eq, T, false>(t, type);
  add_one<Ne, T, false>(t, type);
  add_one<Lt, T, false>(t, type);
  add_one<Le, T, false>(t, type);
  add_one<Gt, T, false>(t, type);
  add_one<Ge, T, false>(t, type);
}
template <class T, bool Ftz, class... C> [[gnu::cold]] void add_real_type(Table& t) {
  (add_one<C, T, Ftz>(t, name_of<T>()), ...);
}
template <class H, bool Ftz, class C> [[gnu::cold]] void add_half_compare(Table& t) {
  const std::string name = std::string(".") + C::name + (Ftz ? ".ftz" : "");
  const std::string n = std::string(".") + H::name;
  t.add("setp" + name + n, setp_half<C, H, Ftz>);
  t.add("setp" + name + n + "x2", setp_pair<C, H, Ftz>);
  if constexpr (!Ftz) {
    t.add("set" + name + n + n, set_half<C, H, u16, H::one>);
    t.add("set" + name + ".u16" + n, set_half<C, H, u16, 0xffff>);
    t.add("set" + name + ".u32" + n, set_half<C, H, u32, 0xffffffff>);
    t.add("set" + name + n + "x2" + n + "x2", set_pair<C, H, false>);
    t.add("set" + name + ".u32" + n + "x2", set_pair<C, H, true>);
  }
}
template <class H, bool Ftz, class... C> [[gnu::cold]] void add_half_type(Table& t) {
  (add_half_compare<H, Ftz, C>(t), ...);
}
template <class T> [[gnu::cold]] void add_select(Table& t, const std::string& type) {
  t.add("selp." + type, selp<T>);
  t.add("slct." + type + ".s32", slct<T, s32, false>);
  t.add("slct." + type + ".f32", slct<T, f32, false>);
  t.add("slct.ftz." + type + ".f32", slct<T, f32, true>);
}

}  // namespace

[[gnu::cold]] void add_compare(Table& t) {
  add_ordered<s16>(t, "s16");
  add_ordered<u16>(t, "u16");
  add_ordered<u16>(t, "b16");
  add_ordered<s32>(t, "s32");
  add_ordered<u32>(t, "u32");
  add_ordered<u32>(t, "b32");
  add_ordered<s64>(t, "s64");
  add_ordered<u64>(t, "u64");
  add_ordered<u64>(t, "b64");
  add_real_type<f32, false, Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan>(t);
  add_real_type<f32, true, Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan>(t);
  add_real_type<f64, false, Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan>(t);
  add_half_type<Half, false, Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan>(t);
  add_half_type<Half, true, Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan>(t);
  add_half_type<Brain, false, Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan>(t);
  t.add("observe.s16", observe<s16>);
  t.add("observe.u16", observe<u16>);
  t.add("observe.s32", observe<s32>);
  t.add("observe.u32", observe<u32>);
  t.add("observe.s64", observe<s64>);
  t.add("observe.u64", observe<u64>);
  for (const char* type : {"b16", "u16", "s16"}) add_select<u16>(t, type);
  for (const char* type : {"b32", "u32", "s32", "f32"}) add_select<u32>(t, type);
  for (const char* type : {"b64", "u64", "s64", "f64"}) add_select<u64>(t, type);
}

}  // namespace sim::SIM_TARGET
