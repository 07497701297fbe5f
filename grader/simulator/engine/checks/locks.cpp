// Locks in global memory without a fence. They are told by what they do: a thread exchanges a word, or compares and
// swaps it, then touches other memory, and then stores in the word what was there before it came. Without a fence
// behind the first and before the last, what the lock guards may be touched before it is taken or after it is given
// back.
#include <bit>
#include <cstring>

#include "engine/checks/checks.h"
#include "engine/checks/races.h"

namespace sim {
namespace {

std::uint64_t bits(const void* from, std::uint32_t size) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, size);
  return value;
}

std::uint64_t operand(const Warp& w, const Access& a, unsigned lane, Slot slot) {
  return bits(lanes_at<std::byte>(w, slot) + lane * a.size, a.size);
}

// What an exchange or a store of one word brings; of a compare and swap, which gives nothing back, something else.
std::uint64_t new_value(const Warp& w, const Instruction& i, const Access& a, unsigned lane) {
  if (!a.atomic) return bits(a.value[0] + lane * a.size, a.size);
  return operand(w, a, lane, i.o[i.o[2] ? 2 : 1]);
}

// Whether an exchange, or a compare and swap, is about to change the word: others hold the lock where it is not.
bool takes(const Warp& w, const Instruction& i, const Access& a, unsigned lane) {
  const auto now = bits(reinterpret_cast<const void*>(a.address[lane]), a.size);
  const auto value = new_value(w, i, a, lane);
  return i.o[3] ? now == value : now != value;
}

void report(const Warp& w, const Instruction& i, const Access& a, unsigned lane, const SharedRaces::Lock& lock) {
  LaunchState& launch = w.worker->launch;
  if (launch.faulted || launch.seen("unfenced_lock", i.site)) return;
  launch.report("unfenced_lock",
                lock.used_early && lock.used_late ? "no_fences"
                : lock.used_early                 ? "no_fence_behind"
                                                  : "no_fence_before",
                i.site, {accessing(w, i, a, lane), launch.at(lock.site)}, target(w, a, lane));
}

}  // namespace

void check_lock(Warp& w, const Instruction& i, const Access& a, SharedRaces& r) {
  SharedRaces::Lock& lock = r.locks[w.number];
  const bool exchanges = a.atomic && i.may_spin;
  if (!exchanges && !lock.word) return;
  if (!exchanges && !i.is_volatile && !(a.low <= lock.word && lock.word < a.high)) {
    lock.used_early |= !lock.fenced;
    lock.used_late = true;
    return;
  }
  if (!a.write || a.size > 8) return;
  const bool swaps = exchanges && i.o[3];  // compares first: that gives nothing back
  const bool releases = !swaps && (exchanges || !a.atomic);
  for (Mask m = a.mask; m && releases; m &= m - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(m));
    if (a.address[lane] != lock.word || new_value(w, i, a, lane) != lock.before) continue;
    const bool held = bits(reinterpret_cast<const void*>(lock.word), a.size) != lock.before;
    if (held && !i.releases && (lock.used_early || lock.used_late)) report(w, i, a, lane, lock);
    lock = {};
    return;
  }
  if (!exchanges) return;
  Mask taken = 0;
  for (Mask m = a.mask; m && !taken; m &= m - 1) {
    if (takes(w, i, a, static_cast<unsigned>(std::countr_zero(m)))) taken = m;
  }
  if (!taken) return;
  const auto lane = static_cast<unsigned>(std::countr_zero(taken));
  lock = {};
  lock.word = a.address[lane];
  lock.before = bits(reinterpret_cast<const void*>(lock.word), a.size);
  lock.site = i.site;
  lock.fenced = i.acquires;
  lock.usual = lock.before == 0 && (swaps ? operand(w, a, lane, i.o[3]) : new_value(w, i, a, lane)) == 1;
}

bool in_unfenced_lock(const SharedRaces& r, std::uint32_t warp) {
  const SharedRaces::Lock& lock = r.locks[warp];
  return lock.usual && lock.used_early;
}

void fence_lock(SharedRaces& r, std::uint32_t warp) {
  r.locks[warp].fenced = true;
  r.locks[warp].used_late = false;
}

}  // namespace sim
