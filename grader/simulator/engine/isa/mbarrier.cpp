// mbarrier, and the arrivals of cp.async at one. A barrier is 64 bits of shared memory; a state, as arrive gives it, is
// such a word, too. Copies are done at once, so an arrival that waits for them takes place at once.
#include "engine/hooks.h"
#include "engine/isa/access.h"

namespace sim::SIM_TARGET {
namespace {

using ptx::Space;

constexpr unsigned count_bits = 20;
constexpr u64 count_mask = (u64{1} << count_bits) - 1;

struct Phases {
  u64 word;
  u64 pending() const { return word & count_mask; }
  u64 expected() const { return word >> count_bits & count_mask; }
  u64 parity() const { return word >> 63; }
  static Phases of(u64 parity, u64 expected, u64 pending) {
    return {parity << 63 | (expected & count_mask) << count_bits | (pending & count_mask)};
  }
  // After so many arrivals, `leaving` of which are not expected again.
  Phases after(u64 arrivals, u64 leaving = 0) const {
    const u64 next = expected() - leaving;
    return arrivals >= pending() ? of(parity() ^ 1, next, next) : of(parity(), next, pending() - arrivals);
  }
};

// f(lane, word) for each lane in turn.
template <class F> void each_barrier(Warp& w, const Instruction& i, Mask mask, bool write, bool atomic, F f) {
  Access a;
  read_addresses(w, i, i.o[1], a.address);
  if (i.space == Space::generic) {
    for (u64& address : a.address) address -= shared_window;
  }
  a.size = 8;
  a.mask = mask;
  a.write = write;
  a.atomic = atomic;
  if (!allowed<Space::shared>(w, i, a)) return;
  if (w.watched) {
    alignas(64) u64 unknown[lane_count] = {};
    a.element = 8;
    a.value[0] = reinterpret_cast<const std::byte*>(unknown);
    watch(w, i, a);
    if (i.releases) arrived(w, a.mask, a.address);
  }
  for (Mask m = a.mask; m; m &= m - 1) {
    const auto l = static_cast<u32>(std::countr_zero(m));
    Phases word;
    std::memcpy(&word, w.shared + a.address[l], sizeof word);
    const Phases after = f(l, word, a.address[l]);
    if (w.watched && write && atomic && after.parity() != word.parity()) completed(w, a.address[l]);
    if (write) std::memcpy(w.shared + a.address[l], &after, sizeof after);
  }
}

void initialise(Warp& w, const Instruction& i, Mask mask) {
  const u32* count = at<u32>(w, i.o[2]);
  each_barrier(w, i, mask, true, false, [=](u32 l, Phases, u64) { return Phases::of(0, count[l], count[l]); });
}
void invalidate(Warp& w, const Instruction& i, Mask mask) {
  // Not compared with arrivals: libcu++ lets one lane do it for others that it knows by a match alone.
  each_barrier(w, i, mask, true, true, [](u32, Phases, u64) { return Phases{0}; });
}

template <bool Completes, bool Drops> void arrive(Warp& w, const Instruction& i, Mask mask) {
  const u32* count = at<u32>(w, i.o[2]);
  u64* state = at<u64>(w, i.o[0]);
  each_barrier(w, i, mask, true, true, [&](u32 l, Phases before, u64) {
    const u64 arrivals = count[l];
    state[l] = before.word;
    if (!Completes) return Phases::of(before.parity(), before.expected(), before.pending() - arrivals);
    return before.after(arrivals, Drops ? arrivals : 0);
  });
}
// cp.async.mbarrier.arrive: the copy expects itself, unless it was counted before (.noinc).
template <bool Counted> void arrive_with_copies(Warp& w, const Instruction& i, Mask mask) {
  finish_copies(w, mask);
  each_barrier(w, i, mask, true, true, [&](u32, Phases before, u64) { return Counted ? before.after(1) : before; });
}

template <bool Parity> void test(Warp& w, const Instruction& i, Mask mask) {
  const u32* parity = at<u32>(w, i.o[2]);
  const u64* state = at<u64>(w, i.o[2]);
  Mask done = 0;
  u64 addresses[lane_count];
  each_barrier(w, i, mask, false, true, [&](u32 l, Phases now, u64 address) {
    const u64 asked = Parity ? parity[l] & 1 : Phases{state[l]}.parity();
    if (now.parity() != asked) {
      done |= lane_bit[l];
      addresses[l] = address;
    }
    return now;
  });
  if (w.watched && i.acquires) waited(w, done, addresses);
  set_predicate(w, i.o[0], done, mask & ~w.fallen);
}
void pending_count(Warp& w, const Instruction& i, Mask mask) {
  const u64* state = at<u64>(w, i.o[2]);
  each(at<u32>(w, i.o[0]), mask, [=](u32 l) { return static_cast<u32>(state[l] & count_mask); });
}

}  // namespace

void add_mbarrier(Table& t) {
  t.add("mbarrier.init", initialise);
  t.add("mbarrier.inval", invalidate);
  t.add("mbarrier.arrive", arrive<true, false>);
  t.add("mbarrier.arrive.noComplete", arrive<false, false>);
  t.add("mbarrier.arrive_drop", arrive<true, true>);
  t.add("mbarrier.test_wait", test<false>);
  t.add("mbarrier.test_wait.parity", test<true>);
  t.add("mbarrier.pending_count", pending_count);
  t.add("cp.async.mbarrier.arrive", arrive_with_copies<false>);
  t.add("cp.async.mbarrier.arrive.noinc", arrive_with_copies<true>);
}

}  // namespace sim::SIM_TARGET
