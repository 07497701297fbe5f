// Moves, packing and unpacking, parameters of functions, addresses of locals. sim: multiversion
#include "engine/isa/lanes.h"

namespace sim::SIM_TARGET {
namespace {

template <class T> void move(Warp& w, const Instruction& i, Mask mask) {
  const T* a = at<T>(w, i.o[1]);
  each(at<T>(w, i.o[0]), mask, [=](u32 l) { return a[l]; });
}
void move_predicate(Warp& w, const Instruction& i, Mask mask) { set_predicate(w, i.o[0], predicate(w, i.o[1]), mask); }

// d = {a, b, …}, the first the lowest.
template <class D, class S> void pack(Warp& w, const Instruction& i, Mask mask) {
  constexpr u32 parts = sizeof(D) / sizeof(S);
  const S* a[parts];
  for (u32 n = 0; n < parts; ++n) a[n] = at<S>(w, i.o[1 + n]);
  each(at<D>(w, i.o[0]), mask, [=](u32 l) {
    D result = 0;
    for (u32 n = 0; n < parts; ++n) result = static_cast<D>(result | static_cast<D>(a[n][l]) << (8 * sizeof(S) * n));
    return result;
  });
}
// {d, e, …} = a; which of them are wanted is in `target`. The source is the last operand.
template <class D, class S> void unpack(Warp& w, const Instruction& i, Mask mask) {
  constexpr u32 parts = sizeof(S) / sizeof(D);
  alignas(64) S a[lane_count];
  std::memcpy(a, at<S>(w, i.o[parts]), sizeof a);
  for (u32 n = 0; n < parts; ++n) {
    if (i.target >> n & 1)
      each(at<D>(w, i.o[n]), mask, [&](u32 l) { return static_cast<D>(a[l] >> (8 * sizeof(D) * n)); });
  }
}

// A generic address: one base added or taken away.
void shift_address(Warp& w, const Instruction& i, Mask mask) {
  const u64* a = at<u64>(w, i.o[1]);
  const u64 base = static_cast<u64>(i.offset);
  each(at<u64>(w, i.o[0]), mask, [=](u32 l) { return a[l] + base; });
}
// Where a local variable of this call lies.
template <class T> void local_address(Warp& w, const Instruction& i, Mask mask) {
  const T address = static_cast<T>(*reinterpret_cast<const u32*>(w.bank[frame_bank]) + i.offset);
  each(at<T>(w, i.o[0]), mask, [=](u32) { return address; });
}
void is_space(Warp& w, const Instruction& i, Mask mask) {
  const u64* a = at<u64>(w, i.o[1]);
  Mask result = 0;
  for (u32 l = 0; l < lane_count; ++l) {
    const auto space = space_of(a[l]);
    if (space == i.space) result |= lane_bit[l];
  }
  set_predicate(w, i.o[0], result, mask);
}

// Parameters of calls lie lane after lane, `target` bytes apart, from slot o[5] on.
template <class T> void load_parameter(Warp& w, const Instruction& i, Mask mask) {
  const std::byte* base = lanes_at<std::byte>(w, i.o[5]) + i.offset;
  T* d = at<T>(w, i.o[0]);
  for (Mask m = mask; m; m &= m - 1) {
    const auto l = static_cast<u32>(std::countr_zero(m));
    std::memcpy(&d[l], base + std::size_t{l} * i.target, sizeof(T));
  }
}
template <class T> void store_parameter(Warp& w, const Instruction& i, Mask mask) {
  std::byte* base = lanes_at<std::byte>(w, i.o[5]) + i.offset;
  const T* a = at<T>(w, i.o[0]);
  for (Mask m = mask; m; m &= m - 1) {
    const auto l = static_cast<u32>(std::countr_zero(m));
    std::memcpy(base + std::size_t{l} * i.target, &a[l], sizeof(T));
  }
}
// A kernel's parameter through an address in a register.
template <class T> void load_kernel_parameter(Warp& w, const Instruction& i, Mask mask) {
  const u64* a = at<u64>(w, i.o[1]);
  T* d = at<T>(w, i.o[0]);
  for (Mask m = mask; m; m &= m - 1) {
    const auto l = static_cast<u32>(std::countr_zero(m));
    const u64 offset = a[l] + static_cast<u64>(i.offset) - parameter_window;
    d[l] = 0;
    if (offset + sizeof(T) <= w.parameter_size) std::memcpy(&d[l], w.parameters + offset, sizeof(T));
  }
}
void nothing(Warp&, const Instruction&, Mask) {}

template <class T> void add_width(Table& t) {
  const std::string n = "b" + std::to_string(8 * sizeof(T));
  t.add("mov." + n, move<T>);
  t.add("ld.call." + n, load_parameter<T>);
  t.add("st.call." + n, store_parameter<T>);
  t.add("ld.kernel." + n, load_kernel_parameter<T>);
}

}  // namespace

void add_move(Table& t) {
  add_width<u8>(t);
  add_width<u16>(t);
  add_width<u32>(t);
  add_width<u64>(t);
  t.add("mov.pred", move_predicate);
  t.add("pack.b32.b16", pack<u32, u16>);
  t.add("pack.b64.b32", pack<u64, u32>);
  t.add("pack.b64.b16", pack<u64, u16>);
  t.add("pack.b16.b8", pack<u16, u8>);
  t.add("pack.b32.b8", pack<u32, u8>);
  t.add("unpack.b32.b16", unpack<u16, u32>);
  t.add("unpack.b64.b32", unpack<u32, u64>);
  t.add("unpack.b64.b16", unpack<u16, u64>);
  t.add("unpack.b16.b8", unpack<u8, u16>);
  t.add("unpack.b32.b8", unpack<u8, u32>);
  t.add("shift_address", shift_address);
  t.add("local_address.b32", local_address<u32>);
  t.add("local_address.b64", local_address<u64>);
  t.add("isspacep", is_space);
  t.add("nothing", nothing);
}

}  // namespace sim::SIM_TARGET
