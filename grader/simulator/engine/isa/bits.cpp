// Logic, shifts, bit fields, permutations. sim: multiversion
#include "engine/isa/lanes.h"

namespace sim::SIM_TARGET {
namespace {

template <class T> constexpr auto conjunction = [](T a, T b) { return static_cast<T>(a & b); };
template <class T> constexpr auto disjunction = [](T a, T b) { return static_cast<T>(a | b); };
template <class T> constexpr auto exclusive = [](T a, T b) { return static_cast<T>(a ^ b); };
template <class T> constexpr auto complement = [](T a) { return static_cast<T>(~a); };
template <class T> constexpr auto is_zero = [](T a) { return static_cast<T>(a == 0); };

// Shifts by the width and more are defined: zeros, or the sign.
template <class T> constexpr auto shift_left = [](T a, u32 n) {
  constexpr u32 width = 8 * sizeof(T);
  return static_cast<T>(
      n < width ? static_cast<T>(static_cast<std::conditional_t<sizeof(T) < 4, u32, T>>(a) << (n & (width - 1)))
                : T{0});
};
template <class T> constexpr auto shift_right = [](T a, u32 n) {
  constexpr u32 width = 8 * sizeof(T);
  const u32 bounded = n < width ? n : width - 1;
  const T shifted = static_cast<T>(a >> bounded);
  return std::is_signed_v<T> || n < width ? shifted : T{0};
};

template <class T> constexpr auto leading_zeros = [](T a) { return static_cast<u32>(std::countl_zero(a)); };
template <class T> constexpr auto ones = [](T a) { return static_cast<u32>(std::popcount(a)); };
template <class T> constexpr auto reversed = [](T a) {
  u64 v = static_cast<u64>(a) << (64 - 8 * sizeof(T));
  v = ((v >> 1) & 0x5555555555555555) | ((v & 0x5555555555555555) << 1);
  v = ((v >> 2) & 0x3333333333333333) | ((v & 0x3333333333333333) << 2);
  v = ((v >> 4) & 0x0f0f0f0f0f0f0f0f) | ((v & 0x0f0f0f0f0f0f0f0f) << 4);
  return static_cast<T>(__builtin_bswap64(v));
};

// The position of the most significant bit that is not the sign; -1 if there is none.
template <class T, bool Amount> constexpr auto find_bit = [](T a) {
  using U = std::make_unsigned_t<T>;
  const U u = static_cast<U>(a < 0 ? ~a : a);
  const u32 zeros = static_cast<u32>(std::countl_zero(u));
  if (zeros == 8 * sizeof(T)) return ~0u;
  return Amount ? zeros : static_cast<u32>(8 * sizeof(T)) - 1 - zeros;
};

template <class T> constexpr auto extract = [](T a, u32 position, u32 length) {
  using U = std::make_unsigned_t<T>;
  constexpr u32 top = 8 * sizeof(T) - 1;
  position &= 0xff;
  length &= 0xff;
  const u32 last = position + length < top + 1 ? position + length : top + 1;  // behind the field
  const U sign = std::is_signed_v<T> && length ? static_cast<U>(a) >> (last - 1 < top ? last - 1 : top) & 1 : 0;
  const U field = position > top ? U{0} : static_cast<U>(a) >> position;
  const u32 kept = position > top ? 0 : last - position;
  const U mask = kept > top ? ~U{0} : (U{1} << kept) - 1;
  return static_cast<T>((field & mask) | (sign ? ~mask : U{0}));
};
template <class T> constexpr auto insert = [](T a, T b, u32 position, u32 length) {
  constexpr u32 width = 8 * sizeof(T);
  position &= 0xff;
  length &= 0xff;
  const T ones_of_length = length >= width ? ~T{0} : static_cast<T>((T{1} << length) - 1);
  const T mask = position >= width ? T{0} : static_cast<T>(ones_of_length << position);
  const T value = position >= width ? T{0} : static_cast<T>(a << position);
  return static_cast<T>((b & ~mask) | (value & mask));
};
template <bool Clamp> constexpr auto mask_of_bits = [](u32 position, u32 length) {
  if (!Clamp) {
    position &= 31;
    length &= 31;
  }
  if (position >= 32) return 0u;
  return (length >= 32 ? ~0u : (1u << length) - 1) << position;
};

constexpr auto find_nth = [](u32 mask, u32 base, s32 offset) {
  if (offset == 0) return base < 32 && mask >> base & 1 ? base : ~0u;
  const s32 step = offset > 0 ? 1 : -1;
  s32 left = offset > 0 ? offset : -offset;
  for (s32 p = static_cast<s32>(base); p >= 0 && p < 32; p += step) {
    if ((mask >> p & 1) && --left == 0) return static_cast<u32>(p);
  }
  return ~0u;
};

constexpr auto byte_of = [](u64 bytes, u32 selector) {
  const u32 byte = static_cast<u32>(bytes >> 8 * (selector & 7)) & 0xff;
  return selector & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte;
};
constexpr auto permute = [](u32 a, u32 b, u32 c) {
  const u64 bytes = u64{b} << 32 | a;
  u32 result = 0;
  for (u32 n = 0; n < 4; ++n) result |= byte_of(bytes, c >> 4 * n & 15) << 8 * n;
  return result;
};
enum class Permutation { f4e, b4e, rc8, ecl, ecr, rc16 };
template <Permutation P> constexpr auto permute_as = [](u32 a, u32 b, u32 c) {
  const u64 bytes = u64{b} << 32 | a;
  const u32 s = c & 3;
  u32 result = 0;
  for (u32 n = 0; n < 4; ++n) {
    u32 from = 0;
    switch (P) {
      case Permutation::f4e: from = s + n; break;
      case Permutation::b4e: from = (s - n) & 7; break;
      case Permutation::rc8: from = s; break;
      case Permutation::ecl: from = n > s ? n : s; break;
      case Permutation::ecr: from = n < s ? n : s; break;
      case Permutation::rc16: from = (s & 1) * 2 + (n & 1); break;
    }
    result |= (static_cast<u32>(bytes >> 8 * from) & 0xff) << 8 * n;
  }
  return result;
};

template <bool Left, bool Clamp> constexpr auto funnel = [](u32 low, u32 high, u32 n) {
  n = Clamp ? (n < 32 ? n : 32) : n & 31;
  const u64 both = u64{high} << 32 | low;
  return Left ? static_cast<u32>((both << n) >> 32) : static_cast<u32>(both >> n);
};

void look_up(Warp& w, const Instruction& i, Mask mask) {
  const u32 *a = at<u32>(w, i.o[1]), *b = at<u32>(w, i.o[2]), *c = at<u32>(w, i.o[3]);
  const u32 table = static_cast<u32>(i.offset);
  u32 row[8];
  for (u32 n = 0; n < 8; ++n) row[n] = table >> n & 1 ? ~0u : 0u;
  each(at<u32>(w, i.o[0]), mask, [=](u32 l) {
    const u32 x = a[l], y = b[l], z = c[l];
    return (~x & ((~y & ((~z & row[0]) | (z & row[1]))) | (y & ((~z & row[2]) | (z & row[3]))))) |
           (x & ((~y & ((~z & row[4]) | (z & row[5]))) | (y & ((~z & row[6]) | (z & row[7])))));
  });
}

template <auto F> void of_predicates(Warp& w, const Instruction& i, Mask mask) {
  set_predicate(w, i.o[0], F(predicate(w, i.o[1]), predicate(w, i.o[2])), mask);
}
void not_predicate(Warp& w, const Instruction& i, Mask mask) { set_predicate(w, i.o[0], ~predicate(w, i.o[1]), mask); }

template <class T> void add_width(Table& t) {
  const std::string n = "b" + std::to_string(8 * sizeof(T));
  t.add("and." + n, binary<conjunction<T>, T, T>);
  t.add("or." + n, binary<disjunction<T>, T, T>);
  t.add("xor." + n, binary<exclusive<T>, T, T>);
  t.add("not." + n, unary<complement<T>, T, T>);
  t.add("cnot." + n, unary<is_zero<T>, T, T>);
  t.add("shl." + n, binary<shift_left<T>, T, T, u32>);
  t.add("shr." + n, binary<shift_right<T>, T, T, u32>);
  using S = std::make_signed_t<T>;
  t.add(std::string("shr.") + name_of<T>(), binary<shift_right<T>, T, T, u32>);
  t.add(std::string("shr.") + name_of<S>(), binary<shift_right<S>, S, S, u32>);
  if constexpr (sizeof(T) >= 4) {
    t.add("clz." + n, unary<leading_zeros<T>, u32, T>);
    t.add("popc." + n, unary<ones<T>, u32, T>);
    t.add("brev." + n, unary<reversed<T>, T, T>);
    t.add("bfi." + n, quaternary<insert<T>, T, T, T, u32, u32>);
    t.add(std::string("bfe.") + name_of<T>(), ternary<extract<T>, T, T, u32, u32>);
    t.add(std::string("bfe.") + name_of<S>(), ternary<extract<S>, S, S, u32, u32>);
    t.add(std::string("bfind.") + name_of<T>(), unary<find_bit<T, false>, u32, T>);
    t.add(std::string("bfind.") + name_of<S>(), unary<find_bit<S, false>, u32, S>);
    t.add(std::string("bfind.shiftamt.") + name_of<T>(), unary<find_bit<T, true>, u32, T>);
    t.add(std::string("bfind.shiftamt.") + name_of<S>(), unary<find_bit<S, true>, u32, S>);
  }
}

}  // namespace

void add_bits(Table& t) {
  add_width<u16>(t);
  add_width<u32>(t);
  add_width<u64>(t);
  t.add("and.pred", of_predicates<conjunction<u32>>);
  t.add("or.pred", of_predicates<disjunction<u32>>);
  t.add("xor.pred", of_predicates<exclusive<u32>>);
  t.add("not.pred", not_predicate);
  t.add("fns.b32", ternary<find_nth, u32, u32, u32, s32>);
  t.add("bmsk.clamp.b32", binary<mask_of_bits<true>, u32, u32>);
  t.add("bmsk.wrap.b32", binary<mask_of_bits<false>, u32, u32>);
  t.add("lop3.b32", look_up);
  t.add("shf.l.clamp.b32", ternary<funnel<true, true>, u32, u32>);
  t.add("shf.l.wrap.b32", ternary<funnel<true, false>, u32, u32>);
  t.add("shf.r.clamp.b32", ternary<funnel<false, true>, u32, u32>);
  t.add("shf.r.wrap.b32", ternary<funnel<false, false>, u32, u32>);
  t.add("prmt.b32", ternary<permute, u32, u32>);
  t.add("prmt.b32.f4e", ternary<permute_as<Permutation::f4e>, u32, u32>);
  t.add("prmt.b32.b4e", ternary<permute_as<Permutation::b4e>, u32, u32>);
  t.add("prmt.b32.rc8", ternary<permute_as<Permutation::rc8>, u32, u32>);
  t.add("prmt.b32.ecl", ternary<permute_as<Permutation::ecl>, u32, u32>);
  t.add("prmt.b32.ecr", ternary<permute_as<Permutation::ecr>, u32, u32>);
  t.add("prmt.b32.rc16", ternary<permute_as<Permutation::rc16>, u32, u32>);
}

}  // namespace sim::SIM_TARGET
