// What the floating-point families share: flushing, the canonical NaN, rounding modes. Internal linkage throughout.
#pragma once

#include <cfenv>

#include "engine/isa/lanes.h"

namespace sim {
namespace {

template <class T> struct BitsOf;
template <> struct BitsOf<f32> {
  using type = u32;
  static constexpr u32 exponent = 0x7f800000, sign = 0x80000000, nan = 0x7fffffff;
};
template <> struct BitsOf<f64> {
  using type = u64;
  static constexpr u64 exponent = 0x7ff0000000000000, sign = 0x8000000000000000, nan = 0x7ff8000000000000;
};
template <class T> using Bits = typename BitsOf<T>::type;

template <class T> SIM_INLINE Bits<T> bits_of(T v) { return std::bit_cast<Bits<T>>(v); }
template <class T> SIM_INLINE T real_of(Bits<T> v) { return std::bit_cast<T>(v); }

template <bool Ftz, class T> SIM_INLINE T flush(T v) {
  if constexpr (!Ftz) return v;
  const auto b = bits_of(v);
  return real_of<T>(b & BitsOf<T>::exponent ? b : b & BitsOf<T>::sign);
}
// A result is flushed by what it would be with no smallest exponent: just below the smallest normal number IEEE 754
// rounds up to it, and a GPU gives zero. Whoever computes such a result says whether it is tiny, mostly from the result
// times 2^64.
template <class T> SIM_INLINE T flush_if(bool tiny, T v) {
  const auto b = bits_of(v);
  return real_of<T>(tiny ? b & BitsOf<T>::sign : b);
}
SIM_INLINE bool tiny_scaled(f32 v) { return std::fabs(v) < 0x1p-62f; }
// Of a quotient, which never comes so close from below that rounding would matter.
SIM_INLINE bool tiny_quotient(f32 a, f32 b) { return std::fabs(a) * 0x1p64f < std::fabs(b) * 0x1p-62f; }
// Results that are NaN are the canonical one in single precision; double precision keeps the payload.
template <class T> SIM_INLINE T canonical(T v) {
  if constexpr (sizeof(T) == 8) return v;
  return v == v ? v : real_of<T>(BitsOf<T>::nan);
}
template <bool Sat, class T> SIM_INLINE T saturate(T v) {
  if constexpr (!Sat) return v;
  return v > T{0} ? (v < T{1} ? v : T{1}) : T{0};  // NaN becomes +0
}

enum class Round { near, zero, down, up };
constexpr const char* round_name(Round r) {
  return r == Round::near ? "" : r == Round::zero ? ".rz" : r == Round::down ? ".rm" : ".rp";
}

// Sets the rounding mode while it lives. The loops in between read and write memory only, which the barriers order.
template <Round R> struct Rounding {
  SIM_INLINE Rounding() {
    if constexpr (R != Round::near) set(R);
  }
  SIM_INLINE ~Rounding() {
    if constexpr (R != Round::near) set(Round::near);
  }
  static SIM_INLINE void set(Round r) {
    asm volatile("" ::: "memory");
#ifdef __SSE2__
    constexpr u32 modes[] = {0x0000, 0x6000, 0x2000, 0x4000};
    __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & ~0x6000u) | modes[static_cast<u32>(r)]);
#else
    constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(modes[static_cast<u32>(r)]);
#endif
    asm volatile("" ::: "memory");
  }
};

}  // namespace
}  // namespace sim
