// Half and bfloat16 as bit patterns, converted with plain operations. Internal linkage throughout.
#pragma once

#include "engine/isa/real_lanes.h"

namespace sim {
namespace {

// A double that holds every bit of a value or, rounded to odd, decides every later rounding rightly.
SIM_INLINE f64 sum_to_odd(f64 a, f64 b) {
  const f64 s = a + b, t = s - a;
  const f64 error = (a - (s - t)) + (b - t);
  const u64 bits = std::bit_cast<u64>(s);
  const bool inexact = error != 0 && error == error && (bits & 1) == 0;
  const bool outward = (error > 0) == (s > 0);
  return std::bit_cast<f64>(inexact ? (outward ? bits + 1 : bits - 1) : bits);
}
// Double to single, rounded to odd.
SIM_INLINE f32 to_odd(f64 v) {
  const f32 r = static_cast<f32>(v);
  const u32 bits = bits_of(r);
  const f64 back = r;
  const bool inexact = back != v && v == v && (bits & 1) == 0;
  const bool outward = std::fabs(back) < std::fabs(v);
  return real_of<f32>(inexact ? (outward ? bits + 1 : bits - 1) : bits);
}

// `tiny`: less is below the smallest normal number when rounded to a normal number's precision.
struct Half {
  static constexpr u16 nan = 0x7fff, sign = 0x8000, infinity = 0x7c00, one = 0x3c00;
  static constexpr f32 tiny = 0x1.ffep-15f;
  static constexpr const char* name = "f16";
  static SIM_INLINE f32 widen(u16 h) {
    const u32 s = static_cast<u32>(h & 0x8000) << 16, m = h & 0x7fff;
    const f32 tiny = static_cast<f32>(static_cast<s32>(m)) * 0x1p-24f;  // subnormals
    const u32 normal = (m << 13) + 0x38000000;
    const u32 special = (m << 13) | 0x7f800000;
    const u32 r = m < 0x400 ? bits_of(tiny) : m < 0x7c00 ? normal : special;
    return real_of<f32>(r | s);
  }
  template <bool Zero = false> static SIM_INLINE u16 narrow(f32 v) {
    const u32 b = bits_of(v), s = b >> 16 & 0x8000, m = b & 0x7fffffff;
    const u32 half = Zero ? 0 : 0xfff + (m >> 13 & 1);
    const u32 normal = (m - 0x38000000 + half) >> 13;
    const f32 scaled = real_of<f32>(m) * 0x1p24f;  // subnormal: an integer number of 2^-24
    const f32 shifter = 8388608.0f;
    const u32 near = bits_of(scaled + shifter) & 0x7ff,
              cut = static_cast<u32>(static_cast<s32>(scaled < 2048.0f ? scaled : 0.0f));
    const u32 tiny = Zero ? cut : near;
    u32 r = m < 0x38800000 ? tiny : normal;
    r = m >= (Zero ? 0x47800000u : 0x477ff000u) ? (Zero && m < 0x7f800000 ? 0x7bffu : 0x7c00u) : r;
    return static_cast<u16>(m > 0x7f800000 ? 0x7fffu : r | s);
  }
};

struct Brain {
  static constexpr u16 nan = 0x7fff, sign = 0x8000, infinity = 0x7f80, one = 0x3f80;
  static constexpr f32 tiny = 0x1.ffp-127f;
  static constexpr const char* name = "bf16";
  static SIM_INLINE f32 widen(u16 h) { return real_of<f32>(static_cast<u32>(h) << 16); }
  template <bool Zero = false> static SIM_INLINE u16 narrow(f32 v) {
    const u32 b = bits_of(v);
    const u32 r = Zero ? b >> 16 : (b + 0x7fff + (b >> 16 & 1)) >> 16;
    return static_cast<u16>(v == v ? r : 0x7fffu);
  }
};

}  // namespace
}  // namespace sim
