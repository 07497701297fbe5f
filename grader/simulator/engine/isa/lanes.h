// Loops over 32 lanes. Everything here has internal linkage: it is compiled for several instruction sets, and the
// linker must not mix them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "engine/isa/table.h"

namespace sim {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using f32 = float;
using f64 = double;

#define SIM_INLINE __attribute__((always_inline)) inline

alignas(128) constexpr u32 lane_bit[lane_count] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,  1u << 8,  1u << 9,  1u << 10,
    1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15, 1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21,
    1u << 22, 1u << 23, 1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

template <class T>
SIM_INLINE T* at(const Warp& w, Slot s) {
  return static_cast<T*>(__builtin_assume_aligned(w.bank[s >> bank_shift] + (s & ((1u << bank_shift) - 1)), 32));
}
SIM_INLINE u32& predicate(const Warp& w, Slot s) {
  return *reinterpret_cast<u32*>(w.bank[s >> bank_shift] + (s & ((1u << bank_shift) - 1)));
}

// d[lane] = f(lane) for the lanes of the mask. f must be defined for every lane: all are computed, the mask selects.
template <class D, class F>
SIM_INLINE void each(D* d, Mask mask, F f) {
  if (mask == all_lanes) {
#pragma GCC ivdep
    for (u32 l = 0; l < lane_count; ++l) d[l] = f(l);
  } else {
#pragma GCC ivdep
    for (u32 l = 0; l < lane_count; ++l) {
      const D value = f(l);
      d[l] = mask & lane_bit[l] ? value : d[l];
    }
  }
}

template <auto F, class D, class A>
void unary(Warp& w, const Instruction& i, Mask mask) {
  const A* a = at<A>(w, i.o[1]);
  each(at<D>(w, i.o[0]), mask, [=](u32 l) { return static_cast<D>(F(a[l])); });
}

template <auto F, class D, class A, class B = A>
void binary(Warp& w, const Instruction& i, Mask mask) {
  const A* a = at<A>(w, i.o[1]);
  const B* b = at<B>(w, i.o[2]);
  each(at<D>(w, i.o[0]), mask, [=](u32 l) { return static_cast<D>(F(a[l], b[l])); });
}

template <auto F, class D, class A, class B = A, class C = A>
void ternary(Warp& w, const Instruction& i, Mask mask) {
  const A* a = at<A>(w, i.o[1]);
  const B* b = at<B>(w, i.o[2]);
  const C* c = at<C>(w, i.o[3]);
  each(at<D>(w, i.o[0]), mask, [=](u32 l) { return static_cast<D>(F(a[l], b[l], c[l])); });
}

template <auto F, class D, class A, class B, class C, class E>
void quaternary(Warp& w, const Instruction& i, Mask mask) {
  const A* a = at<A>(w, i.o[1]);
  const B* b = at<B>(w, i.o[2]);
  const C* c = at<C>(w, i.o[3]);
  const E* e = at<E>(w, i.o[4]);
  each(at<D>(w, i.o[0]), mask, [=](u32 l) { return static_cast<D>(F(a[l], b[l], c[l], e[l])); });
}

// The mask of the lanes where f holds.
template <class F>
SIM_INLINE Mask collect(F f) {
  alignas(64) u32 bits[lane_count];
#pragma GCC ivdep
  for (u32 l = 0; l < lane_count; ++l) bits[l] = f(l) ? lane_bit[l] : 0;
  Mask result = 0;
  for (u32 l = 0; l < lane_count; ++l) result |= bits[l];
  return result;
}

SIM_INLINE void set_predicate(const Warp& w, Slot s, Mask value, Mask mask) {
  u32& p = predicate(w, s);
  p = (p & ~mask) | (value & mask);
}

template <class T>
constexpr const char* name_of() {
  if constexpr (std::is_same_v<T, u8>) return "u8";
  if constexpr (std::is_same_v<T, u16>) return "u16";
  if constexpr (std::is_same_v<T, u32>) return "u32";
  if constexpr (std::is_same_v<T, u64>) return "u64";
  if constexpr (std::is_same_v<T, s8>) return "s8";
  if constexpr (std::is_same_v<T, s16>) return "s16";
  if constexpr (std::is_same_v<T, s32>) return "s32";
  if constexpr (std::is_same_v<T, s64>) return "s64";
  if constexpr (std::is_same_v<T, f32>) return "f32";
  if constexpr (std::is_same_v<T, f64>) return "f64";
}

}  // namespace
}  // namespace sim
