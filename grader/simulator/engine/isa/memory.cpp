// Loads and stores. Operands: the elements, then the address. sim: multiversion
#include "engine/hooks.h"
#include "engine/isa/access.h"

namespace sim::SIM_TARGET {
namespace {

using ptx::Space;

// d[n][lane] = from[lane * N + n], and the reverse.
template <class T, int N> SIM_INLINE void spread(T* const (&d)[N], const T* from) {
#pragma GCC ivdep
  for (u32 l = 0; l < lane_count; ++l) {
    for (int n = 0; n < N; ++n) d[n][l] = from[l * N + n];
  }
}
template <class T, int N> SIM_INLINE void interleave(T* to, const T* const (&s)[N]) {
#pragma GCC ivdep
  for (u32 l = 0; l < lane_count; ++l) {
    for (int n = 0; n < N; ++n) to[l * N + n] = s[n][l];
  }
}

// Blocks go through memory page by page, and a processor does not look ahead beyond a page.
SIM_INLINE void fetch_ahead(const Access& a) {
  constexpr u64 page = 4096;
  constexpr u32 line = 64;
  for (u32 l = 0; l < lane_count; l += line / a.size)
    __builtin_prefetch(reinterpret_cast<const void*>(a.address[l] + page));
}

template <class T, int N> SIM_INLINE void describe(Access& a, bool write) {
  a.size = sizeof(T) * N;
  a.element = sizeof(T);
  a.write = write;
}

// Not inlined, as the next: handlers for a space and for generic addresses share it.
template <class T, int N, Space S> [[gnu::noinline]] void load_from(Warp& w, const Instruction& i, Access& a) {
  describe<T, N>(a, false);
  if (!allowed<S>(w, i, a)) return;
  Mask late = 0;
  alignas(8) std::byte older[S == Space::global && N == 1 ? lane_count * sizeof(T) : 1];
  if constexpr (S == Space::global && N == 1) {
    if (w.watched && i.is_volatile) [[unlikely]]
      late = lagging(w, a, older);
  }
  if (S != Space::local && w.watched) watch(w, i, a);
  if constexpr (S == Space::global && N > 1) fetch_ahead(a);
  T* d[N];
  for (int n = 0; n < N; ++n) d[n] = at<T>(w, i.o[n]);
  if (S != Space::local && a.mask == all_lanes && a.shape == Access::Shape::contiguous) {
    spread<T, N>(d, reinterpret_cast<const T*>(place<S>(w, a.low, 0)));
  } else if (S != Space::local && a.shape == Access::Shape::uniform) {
    T value[N];
    std::memcpy(value, place<S>(w, a.low, 0), sizeof value);
    for (int n = 0; n < N; ++n) each(d[n], a.mask, [&](u32) { return value[n]; });
  } else if (N > 1 && a.mask == all_lanes) {  // rows that warps share: each lane's piece is moved as one
    alignas(64) T gathered[lane_count * N];
    for (u32 l = 0; l < lane_count; ++l) std::memcpy(gathered + l * N, place<S>(w, a.address[l], l), sizeof(T) * N);
    spread<T, N>(d, gathered);
  } else {
    for (Mask m = a.mask; m; m &= m - 1) {
      const auto l = static_cast<u32>(std::countr_zero(m));
      const std::byte* from = place<S>(w, a.address[l], l);
      for (int n = 0; n < N; ++n) std::memcpy(&d[n][l], from + n * sizeof(T), sizeof(T));
    }
  }
  for (Mask m = late; m; m &= m - 1) {
    const auto l = static_cast<u32>(std::countr_zero(m));
    std::memcpy(&d[0][l], older + l * sizeof(T), sizeof(T));
  }
}

template <class T, int N, Space S> [[gnu::noinline]] void store_to(Warp& w, const Instruction& i, Access& a) {
  describe<T, N>(a, true);
  if (!allowed<S>(w, i, a)) return;
  const T* s[N];
  for (int n = 0; n < N; ++n) s[n] = at<T>(w, i.o[n]);
  if (S != Space::local && w.watched) {
    for (int n = 0; n < N; ++n) a.value[n] = reinterpret_cast<const std::byte*>(s[n]);
    watch(w, i, a);
  }
  if (S != Space::local && a.mask == all_lanes && a.shape == Access::Shape::contiguous) {
    interleave<T, N>(reinterpret_cast<T*>(place<S>(w, a.low, 0)), s);
  } else if (N > 1 && a.mask == all_lanes) {
    alignas(64) T scattered[lane_count * N];
    interleave<T, N>(scattered, s);
    lane_by_lane(w.descending, all_lanes,
                 [&](u32 l) { std::memcpy(place<S>(w, a.address[l], l), scattered + l * N, sizeof(T) * N); });
  } else {
    lane_by_lane(w.descending, a.mask, [&](u32 l) {
      std::byte* to = place<S>(w, a.address[l], l);
      for (int n = 0; n < N; ++n) std::memcpy(to + n * sizeof(T), &s[n][l], sizeof(T));
    });
  }
}

template <class T, int N, Space S, bool Store> void transfer(Warp& w, const Instruction& i, Mask mask) {
  Access a;
  read_addresses(w, i, i.o[N], a.address);
  a.mask = mask;
  if constexpr (S != Space::generic) {
    if constexpr (Store)
      store_to<T, N, S>(w, i, a);
    else
      load_from<T, N, S>(w, i, a);
  } else {
    by_space(a.address, mask, [&]<Space Found>(Mask part) {
      a.mask = part;
      if constexpr (Store)
        store_to<T, N, Found>(w, i, a);
      else
        load_from<T, N, Found>(w, i, a);
    });
  }
}

// cp.async: o[0] the shared address, o[1] the global one, o[2] the bytes that are read (the rest is zeros). The copy is
// done at once; the race checker tells those who read it before it is waited for.
template <u32 Size> void copy_to_shared(Warp& w, const Instruction& i, Mask mask) {
  Access from, to;
  read_addresses(w, i, i.o[0], to.address);
  const u64* source = at<u64>(w, i.o[1]);
  const u32* bytes = at<u32>(w, i.o[2]);
  alignas(64) std::byte value[Size / 4][lane_count * 4];
  std::memset(value, 0, sizeof value);
  Mask reading = 0;
  u32 sizes = 0;
  for (u32 l = 0; l < lane_count; ++l) {
    from.address[l] = source[l] + static_cast<u64>(static_cast<s64>(static_cast<s32>(i.target)));
    if (bytes[l] == 0 || (mask & lane_bit[l]) == 0) continue;
    reading |= lane_bit[l];
    sizes |= std::min(bytes[l], Size);
  }
  to.size = Size;
  to.element = 4;
  to.write = true;
  if (reading) {
    // What is not read may lie outside of all arrays. So what ends within a copy is read by powers of two.
    const auto begins = std::to_array(from.address);
    for (u32 part = Size; part != 0; part /= 2) {
      if ((sizes & part) == 0) continue;
      from.mask = 0;
      from.size = part;
      from.element = part < 4 ? part : 4;
      for (Mask m = reading & ~w.fallen; m; m &= m - 1) {
        const auto l = static_cast<u32>(std::countr_zero(m));
        const u32 read = std::min(bytes[l], Size);
        if ((read & part) == 0) continue;
        from.address[l] = begins[l] + (read & ~(2 * part - 1));
        from.mask |= lane_bit[l];
      }
      if (from.mask && allowed<Space::global>(w, i, from) && w.watched) watch(w, i, from);
    }
    std::ranges::copy(begins, from.address);
    for (Mask m = reading & ~w.fallen; m; m &= m - 1) {
      const auto l = static_cast<u32>(std::countr_zero(m));
      std::byte staged[Size] = {};
      std::memcpy(staged, reinterpret_cast<const std::byte*>(from.address[l]), bytes[l] < Size ? bytes[l] : Size);
      for (u32 n = 0; n < Size / 4; ++n) std::memcpy(&value[n][4 * l], staged + 4 * n, 4);
    }
  }
  to.mask = mask & ~w.fallen;
  if (!to.mask || !allowed<Space::shared>(w, i, to)) return;
  if (w.watched) {
    for (u32 n = 0; n < Size / 4; ++n) to.value[n] = value[n];
    watch(w, i, to);
    copied(w, i, to);
  }
  for (Mask m = to.mask; m; m &= m - 1) {
    const auto l = static_cast<u32>(std::countr_zero(m));
    for (u32 n = 0; n < Size / 4; ++n) std::memcpy(w.shared + to.address[l] + 4 * n, &value[n][4 * l], 4);
  }
}

template <class T, int N, Space S> void add_one(Table& t, const std::string& space) {
  const std::string n = (N == 1 ? "" : ".v" + std::to_string(N)) + ".b" + std::to_string(8 * sizeof(T));
  t.add("ld." + space + n, transfer<T, N, S, false>);
  t.add("st." + space + n, transfer<T, N, S, true>);
}
template <Space S> void add_space(Table& t, const std::string& space) {
  add_one<u8, 1, S>(t, space);
  add_one<u16, 1, S>(t, space);
  add_one<u32, 1, S>(t, space);
  add_one<u64, 1, S>(t, space);
  add_one<u8, 2, S>(t, space);
  add_one<u16, 2, S>(t, space);
  add_one<u32, 2, S>(t, space);
  add_one<u64, 2, S>(t, space);
  add_one<u8, 4, S>(t, space);
  add_one<u16, 4, S>(t, space);
  add_one<u32, 4, S>(t, space);
}

}  // namespace

void add_memory(Table& t) {
  add_space<Space::generic>(t, "generic");
  add_space<Space::global>(t, "global");
  add_space<Space::shared>(t, "shared");
  add_space<Space::local>(t, "local");
  t.add("cp.async.4", copy_to_shared<4>);
  t.add("cp.async.8", copy_to_shared<8>);
  t.add("cp.async.16", copy_to_shared<16>);
}

}  // namespace sim::SIM_TARGET
