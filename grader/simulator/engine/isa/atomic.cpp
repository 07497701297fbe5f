// atom and red: lane after lane. Global memory may be shared with other threads of ours, so there the operation is
// atomic for the host too. Operands: result (unless red), address, b, c.
#include <atomic>
#include <utility>

#include "engine/hooks.h"
#include "engine/isa/access.h"
#include "engine/isa/half_lanes.h"
#include "engine/late.h"

namespace sim {
void count_atomics(Warp&, const Instruction&, Mask);
}

namespace sim::SIM_TARGET {
namespace {

using ptx::Space;

struct Add {
  template <class T> static T of(T a, T b, T) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
    else
      return canonical(a + b);
  }
};
struct AddFlushed {
  template <class T> static T of(T a, T b, T) { return flush<true>(canonical(flush<true>(a) + flush<true>(b))); }
};
struct Min {
  template <class T> static T of(T a, T b, T) { return b < a ? b : a; }
};
struct Max {
  template <class T> static T of(T a, T b, T) { return b > a ? b : a; }
};
struct And {
  template <class T> static T of(T a, T b, T) { return a & b; }
};
struct Or {
  template <class T> static T of(T a, T b, T) { return a | b; }
};
struct Xor {
  template <class T> static T of(T a, T b, T) { return a ^ b; }
};
struct Exchange {
  template <class T> static T of(T, T b, T) { return b; }
};
struct Swap {
  template <class T> static T of(T a, T b, T c) { return a == b ? c : a; }
};  // compare and swap
struct Increment {
  template <class T> static T of(T a, T b, T) { return a >= b ? T{0} : static_cast<T>(a + 1); }
};
struct Decrement {
  template <class T> static T of(T a, T b, T) { return a == 0 || a > b ? b : static_cast<T>(a - 1); }
};
template <class H> struct AddHalf {
  static u16 of(u16 a, u16 b, u16) { return H::template narrow<>(to_odd(sum_to_odd(H::widen(a), H::widen(b)))); }
};
template <class H> struct AddPair {
  static u32 of(u32 a, u32 b, u32) {
    return AddHalf<H>::of(static_cast<u16>(a), static_cast<u16>(b), 0) |
           static_cast<u32>(AddHalf<H>::of(static_cast<u16>(a >> 16), static_cast<u16>(b >> 16), 0)) << 16;
  }
};

template <class Op, class T, Space S> SIM_INLINE T apply(std::byte* where, T b, T c) {
  T& cell = *reinterpret_cast<T*>(where);
  if constexpr (S == Space::global) {
    // Single precision in global memory flushes subnormals, in shared memory it does not.
    using Applied = std::conditional_t<std::is_same_v<Op, Add> && std::is_same_v<T, f32>, AddFlushed, Op>;
    std::atomic_ref<T> shared(cell);
    T old = shared.load(std::memory_order_relaxed);
    if constexpr (std::is_same_v<Op, Add> && std::is_integral_v<T>) return shared.fetch_add(b);
    while (!shared.compare_exchange_weak(old, Applied::of(old, b, c))) {}
    return old;
  } else {
    const T old = cell;
    cell = Op::of(old, b, c);
    return old;
  }
}

template <class Op, class T> void later(std::byte* where, u64 value) {
  T b;
  std::memcpy(&b, &value, sizeof(T));
  apply<Op, T, Space::global>(where, b, b);
}

// Lanes whose atomics come before the last store: d becomes what they read, and what they write the store replaces.
template <class Op, class T>
[[gnu::cold]] void update_before(const Warp& w, const Access& a, Mask lanes, std::byte* older, T* d, const T* b,
                                 const T* c) {
  for (Mask m = lanes; m; m &= m - 1) {
    const auto l = static_cast<u32>(std::countr_zero(m));
    std::byte* cell = older + l * sizeof(T);
    d[l] = apply<Op, T, Space::global>(cell, b[l], c[l]);
    u64 written = 0;
    std::memcpy(&written, cell, sizeof(T));
    put_before(w, a.address[l], written);
  }
}

template <class Op, class T, Space S> [[gnu::noinline]] void modify(Warp& w, const Instruction& i, Access& a,
                                                                    unsigned first) {
  if (!allowed<S>(w, i, a)) return;
  Mask late = 0;
  alignas(8) std::byte older[S == Space::global ? lane_count * sizeof(T) : 1];
  const T* b = at<T>(w, i.o[first + 1]);
  const T* c = std::is_same_v<Op, Swap> ? at<T>(w, i.o[first + 2]) : b;
  if constexpr (S == Space::global) {
    if (w.watched && first) [[unlikely]] {
      late = lagging(w, a, older, !i.polls);
      if (late && !i.polls) {
        update_before<Op>(w, a, late, older, at<T>(w, i.o[0]), b, c);
        a.mask &= ~std::exchange(late, 0);
        a.shape = Access::Shape::scattered;
        if (!a.mask) return;
      }
    }
  }
  if (S != Space::local && w.watched) watch(w, i, a);
  if constexpr (S != Space::local && !std::is_same_v<Op, Swap>) {
    constexpr bool in_block = S == Space::shared;
    if (w.watched && comes_late(w, i, in_block)) [[unlikely]] {
      for (Mask m = a.mask; m; m &= m - 1) {
        const auto l = static_cast<u32>(std::countr_zero(m));
        u64 value = 0;
        std::memcpy(&value, &b[l], sizeof(T));
        put_late(w, l, in_block, {place<S>(w, a.address[l], l), sizeof(T), value, later<Op, T>});
      }
      return;
    }
  }
  T* d = first ? at<T>(w, i.o[0]) : nullptr;
  // Not where lanes order what they do by it: the checker takes the first lane's for what the others see.
  lane_by_lane(w.descending && !i.acquires && !i.releases, a.mask, [&](u32 l) {
    const T old = apply<Op, T, S>(place<S>(w, a.address[l], l), b[l], c[l]);
    if (d) d[l] = old;
  });
  for (Mask m = late; m; m &= m - 1) {
    const auto l = static_cast<u32>(std::countr_zero(m));
    std::memcpy(&d[l], older + l * sizeof(T), sizeof(T));
  }
}

template <class Op, class T, Space S, bool Result> void atomic(Warp& w, const Instruction& i, Mask mask) {
  Access a;
  a.size = sizeof(T);
  a.mask = mask;
  a.write = a.atomic = true;
  read_addresses(w, i, i.o[Result], a.address);
  count_atomics(w, i, mask);
  if constexpr (S != Space::generic) {
    modify<Op, T, S>(w, i, a, Result);
  } else {
    by_space(a.address, mask, [&]<Space Found>(Mask part) {
      a.mask = part;
      modify<Op, T, Found>(w, i, a, Result);
    });
  }
}

template <class Op, class T, Space S> [[gnu::cold]] void add_in(Table& t, const std::string& space,
                                                                const std::string& name) {
  t.add("atom" + space + name, atomic<Op, T, S, true>);
  t.add("red" + space + name, atomic<Op, T, S, false>);
}
template <class Op, class T> [[gnu::cold]] void add_op(Table& t, const std::string& name) {
  add_in<Op, T, Space::generic>(t, ".generic", name);
  add_in<Op, T, Space::global>(t, ".global", name);
  add_in<Op, T, Space::shared>(t, ".shared", name);
}
template <class T> [[gnu::cold]] void add_bits_of(Table& t, const std::string& type) {
  add_op<And, T>(t, ".and" + type);
  add_op<Or, T>(t, ".or" + type);
  add_op<Xor, T>(t, ".xor" + type);
  add_op<Exchange, T>(t, ".exch" + type);
  add_op<Swap, T>(t, ".cas" + type);
}
template <class T> [[gnu::cold]] void add_arithmetic(Table& t) {
  const std::string type = std::string(".") + name_of<T>();
  add_op<Add, T>(t, ".add" + type);
  add_op<Min, T>(t, ".min" + type);
  add_op<Max, T>(t, ".max" + type);
}

}  // namespace

[[gnu::cold]] void add_atomic(Table& t) {
  add_arithmetic<u32>(t);
  add_arithmetic<s32>(t);
  add_arithmetic<u64>(t);
  add_arithmetic<s64>(t);
  add_bits_of<u32>(t, ".b32");
  add_bits_of<u64>(t, ".b64");
  add_op<Exchange, u16>(t, ".exch.b16");
  add_op<Swap, u16>(t, ".cas.b16");
  add_op<Increment, u32>(t, ".inc.u32");
  add_op<Decrement, u32>(t, ".dec.u32");
  add_op<Add, f32>(t, ".add.f32");
  add_op<Add, f64>(t, ".add.f64");
  add_op<AddHalf<Half>, u16>(t, ".add.noftz.f16");
  add_op<AddHalf<Brain>, u16>(t, ".add.noftz.bf16");
  add_op<AddPair<Half>, u32>(t, ".add.noftz.f16x2");
  add_op<AddPair<Brain>, u32>(t, ".add.noftz.bf16x2");
}

}  // namespace sim::SIM_TARGET
