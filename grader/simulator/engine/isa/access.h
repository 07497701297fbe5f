// From the address operand of an instruction to a checked access. Internal linkage throughout.
#pragma once

#include "engine/isa/lanes.h"

namespace sim {
namespace {

SIM_INLINE void read_addresses(const Warp& w, const Instruction& i, Slot slot, u64* address) {
  const u64 offset = static_cast<u64>(i.offset);
  if (i.narrow_address) {
    const u32* a = at<u32>(w, slot);
    for (u32 l = 0; l < lane_count; ++l) address[l] = static_cast<u32>(a[l] + static_cast<u32>(offset));
  } else {
    const u64* a = at<u64>(w, slot);
    for (u32 l = 0; l < lane_count; ++l) address[l] = a[l] + offset;
  }
}

// Finds shape, bounds; true if all addresses are aligned.
SIM_INLINE bool classify(Access& a) {
  using Shape = Access::Shape;
  const u64* p = a.address;
  const Mask mask = a.mask;
  const auto first = static_cast<u32>(std::countr_zero(mask));
  const u64 start = p[first] - u64{first} * a.size;
  u64 apart = 0, differ = 0, odd = 0;
  if (mask == all_lanes) {
    for (u32 l = 0; l < lane_count; ++l) {
      apart |= p[l] ^ (start + u64{l} * a.size);
      differ |= p[l] ^ p[0];
      odd |= p[l];
    }
  } else {
    for (u32 l = 0; l < lane_count; ++l) {
      const u64 active = mask & lane_bit[l] ? ~u64{0} : 0;
      apart |= (p[l] ^ (start + u64{l} * a.size)) & active;
      differ |= (p[l] ^ p[first]) & active;
      odd |= p[l] & active;
    }
  }
  if (apart == 0) {
    a.shape = Shape::contiguous;
    a.low = p[first];
    a.high = p[31 - static_cast<u32>(std::countl_zero(mask))] + a.size;
  } else if (differ == 0) {
    a.shape = Shape::uniform;
    a.low = p[first];
    a.high = a.low + a.size;
  } else {
    a.shape = Shape::scattered;
    u64 low = ~u64{0}, high = 0;
    for (u32 l = 0; l < lane_count; ++l) {
      const bool active = mask & lane_bit[l];
      const u64 below = active ? p[l] : ~u64{0}, above = active ? p[l] : 0;
      low = below < low ? below : low;
      high = above > high ? above : high;
    }
    a.low = low;
    a.high = high + a.size;
  }
  return (odd & (a.size - 1)) == 0;
}

// Bounds, then the checkers. False if no lane is left.
template <ptx::Space S> SIM_INLINE bool allowed(Warp& w, const Instruction& i, Access& a) {
  a.space = S;
  const bool aligned = classify(a);
  bool inside;
  if constexpr (S == ptx::Space::global) {
    const Region& region = w.regions[i.site];
    inside = a.low >= region.base && a.high <= region.end;
  } else if constexpr (S == ptx::Space::shared) {
    inside = a.high <= w.shared_size;
  } else {
    inside = a.high <= w.local_top;
  }
  if (!(inside && aligned && a.low < a.high)) [[unlikely]] {
    if (!admit(w, i, a)) return false;
    if (a.mask != all_lanes) classify(a);
  }
  return true;
}

template <ptx::Space S> SIM_INLINE std::byte* place(const Warp& w, u64 address, u32 lane) {
  if constexpr (S == ptx::Space::global) return reinterpret_cast<std::byte*>(address);
  if constexpr (S == ptx::Space::shared) return w.shared + address;
  return w.local + std::size_t{lane} * w.local_stride + address;
}

// Calls f.template operator()<space>(mask) for the lanes of each space of generic addresses, made relative to it.
template <class F> SIM_INLINE void by_space(u64* address, Mask mask, F f) {
  using ptx::Space;
  Mask shared = 0, local = 0;
  for (u32 l = 0; l < lane_count; ++l) {
    const u64 in_shared = address[l] - shared_window, in_local = address[l] - local_window;
    if (in_shared < window_size) shared |= lane_bit[l];
    if (in_local < window_size) local |= lane_bit[l];
  }
  shared &= mask;
  local &= mask;
  if (const Mask global = mask & ~shared & ~local) f.template operator()<Space::global>(global);
  if (shared) {
    for (u32 l = 0; l < lane_count; ++l) address[l] -= shared & lane_bit[l] ? shared_window : 0;
    f.template operator()<Space::shared>(shared);
  }
  if (local) {
    for (u32 l = 0; l < lane_count; ++l) address[l] -= local & lane_bit[l] ? local_window : 0;
    f.template operator()<Space::local>(local);
  }
}

// Lane after lane. Where several write to one place at once, PTX leaves open in which order: from the first lane to the
// last in program order, and from the last one in the reversed order.
template <class F> SIM_INLINE void lane_by_lane(bool descending, Mask mask, F write) {
  if (descending) {
    for (Mask m = mask; m;) {
      const auto l = lane_count - 1 - static_cast<u32>(std::countl_zero(m));
      m ^= lane_bit[l];
      write(l);
    }
  } else {
    for (Mask m = mask; m; m &= m - 1) write(static_cast<u32>(std::countr_zero(m)));
  }
}

}  // namespace
}  // namespace sim
