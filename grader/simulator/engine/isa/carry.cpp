// Sums that write and read the carry flag (a predicate that the decoder keeps per function).
//
// There is a single flag, CC.CF, for additions and subtractions. A GPU subtracts by adding the complement, so what
// sub.cc leaves is a carry that says "nothing was borrowed", and subc adds it: a + ~b + CC.CF. The PTX ISA ("Extended
// Precision Arithmetic") tells of a borrow, which is the same where only sub.cc and subc meet; nvcc's division of
// 128-bit integers reads the flag of sub.cc with addc.
#include "engine/isa/lanes.h"

namespace sim::SIM_TARGET {
namespace {

enum class Op { add, sub, mad_lo, mad_hi };

// Operands in PTX order; the carry's slot is o[5].
template <class T, Op O, bool In, bool Out>
void carry(Warp& w, const Instruction& i, Mask mask) {
  using U = std::make_unsigned_t<T>;
  using Wide = std::conditional_t<sizeof(T) == 4, u64, unsigned __int128>;
  using Product = std::conditional_t<std::is_signed_v<T>, std::conditional_t<sizeof(T) == 4, s64, __int128>, Wide>;
  constexpr bool product = O == Op::mad_lo || O == Op::mad_hi;
  const T *a = at<T>(w, i.o[1]), *b = at<T>(w, i.o[2]);
  const T* c = product ? at<T>(w, i.o[3]) : nullptr;
  T* d = at<T>(w, i.o[0]);
  const Mask flag = predicate(w, i.o[5]);
  Mask out = 0;
  for (u32 l = 0; l < lane_count; ++l) {
    constexpr Wide none = O == Op::sub ? 1 : 0;  // neither borrows nor carries
    const Wide in = In ? flag >> l & 1 : none;
    Wide result;
    if constexpr (O == Op::sub) {
      result = Wide{static_cast<U>(a[l])} + static_cast<U>(~b[l]) + in;
    } else if constexpr (product) {
      const Product p = static_cast<Product>(a[l]) * static_cast<Product>(b[l]);
      const U part = static_cast<U>(O == Op::mad_lo ? p : p >> (8 * sizeof(T)));
      result = Wide{part} + static_cast<U>(c[l]) + in;
    } else {
      result = Wide{static_cast<U>(a[l])} + static_cast<U>(b[l]) + in;
    }
    if (result >> (8 * sizeof(T)) & 1) out |= lane_bit[l];
    if (mask & lane_bit[l]) d[l] = static_cast<T>(result);
  }
  if (Out) set_predicate(w, i.o[5], out, mask);
}

template <class T> void add_type(Table& t) {
  const std::string n = name_of<T>();
  t.add("add.cc." + n, carry<T, Op::add, false, true>);
  t.add("addc." + n, carry<T, Op::add, true, false>);
  t.add("addc.cc." + n, carry<T, Op::add, true, true>);
  t.add("sub.cc." + n, carry<T, Op::sub, false, true>);
  t.add("subc." + n, carry<T, Op::sub, true, false>);
  t.add("subc.cc." + n, carry<T, Op::sub, true, true>);
  t.add("mad.lo.cc." + n, carry<T, Op::mad_lo, false, true>);
  t.add("mad.hi.cc." + n, carry<T, Op::mad_hi, false, true>);
  t.add("madc.lo." + n, carry<T, Op::mad_lo, true, false>);
  t.add("madc.hi." + n, carry<T, Op::mad_hi, true, false>);
  t.add("madc.lo.cc." + n, carry<T, Op::mad_lo, true, true>);
  t.add("madc.hi.cc." + n, carry<T, Op::mad_hi, true, true>);
}

}  // namespace

void add_carry(Table& t) {
  add_type<u32>(t);
  add_type<s32>(t);
  add_type<u64>(t);
  add_type<s64>(t);
}

}  // namespace sim::SIM_TARGET
