// Races between threads of one block in global memory, by the clocks of racecheck for shared memory.
//
// What a warp does in a piece of 512 bytes is mostly a row of its threads: told in so few words, it takes one comparison
// to see that the same threads come again. Only plain accesses of whole words are looked at; a fence, whatever follows it,
// orders what its warp did before and what that warp had met others after. So a race may be missed, but a correct program is never accused.
#include <algorithm>
#include <bit>

#include "engine/checks/checks.h"
#include "engine/checks/races.h"

namespace sim {
namespace {

using Touch = SharedRaces::Touch;

constexpr unsigned piece_shift = 9;

struct Checker {
  Warp& w;
  const Instruction& i;
  const Access& a;
  SharedRaces& r;

  std::uint16_t thread(unsigned lane) const { return static_cast<std::uint16_t>(w.number * lane_count + lane); }
  bool conflicts(const Touch& touch, std::uint32_t other, unsigned lane) const {
    return other != thread(lane) && touch.clock >= r.released[other / lane_count] &&
           !ordered(r, touch.clock << SharedRaces::thread_bits | other, w.number, lane);
  }
  void report(const Touch& touch, bool other_writes, std::uint32_t other, unsigned lane) const {
    LaunchState& launch = w.worker->launch;
    if (launch.faulted || launch.seen("race_global", i.site)) return;
    const bool same_warp = other / lane_count == w.number;
    launch.report("racecheck", "race_global", i.site,
                  describe(w, i, a, lane) + " that " + name_thread(launch, *w.block, other / lane_count, other % lane_count) + (other_writes ? " has written" : " has read") +
                      " (line " + std::to_string(launch.place(touch.site).line) + "), and nothing orders the two: a " + (same_warp ? "__syncwarp()" : "__syncthreads()") +
                      " between them is missing");
  }

  // Compares with what others did to these bytes; `lane_of` tells who touches which now. Whether some of them have just
  // written the same: whoever reads it may find either.
  template <class F> bool against(const Touch& touch, bool other_writes, const Touch& me, F lane_of) const {
    if (touch.clock < r.floor[w.number] || (touch.alike(me) && touch.first == touch.second)) return false;
    bool same = false;
    const bool together = touch.shift == SharedRaces::same_place;
    const Address end = std::min(touch.low + touch.bytes, me.low + me.bytes);
    for (Address at = std::max(touch.low, me.low); at < end; at += 4) {
      const unsigned lane = lane_of(at);
      std::uint32_t other = together ? touch.first : static_cast<std::uint32_t>((at - touch.origin) >> touch.shift);
      if (together && !conflicts(touch, other, lane)) other = touch.second;
      if (!conflicts(touch, other, lane)) continue;
      if (a.write && (silent(a, lane) || (touch.site == i.site && touch.clock == r.clock && other / lane_count == w.number))) {
        same = true;
      } else {
        report(touch, other_writes, other, lane);
      }
    }
    return same;
  }

  // Bytes [low, high), of which each lane touches those of its own, or all of `mask` the same.
  void run(Address low, Address high, unsigned first, Mask mask, bool together) {
    Touch me;
    me.clock = r.clock;
    me.site = i.site;
    if (together) {
      me.shift = SharedRaces::same_place;
      me.first = thread(first);
      me.second = thread(lane_count - 1 - static_cast<unsigned>(std::countl_zero(mask)));
    } else {
      me.shift = static_cast<std::uint8_t>(std::countr_zero(a.size));
      me.origin = low - (Address{thread(first)} << me.shift);
    }
    const auto lane_of = [&](Address at) { return together ? first : first + static_cast<unsigned>((at - low) >> me.shift); };
    const std::uint32_t floor = r.floor[w.number];
    const bool after_writes = r.last_global_write >= floor, after_reads = a.write && r.last_global_read >= floor;
    for (Address from = low, to; from < high; from = to) {
      to = std::min(high, ((from >> piece_shift) + 1) << piece_shift);
      me.low = from;
      me.bytes = static_cast<std::uint16_t>(to - from);
      const auto slot = (from >> piece_shift) % SharedRaces::touches;
      bool same = after_writes && against(r.global_writes[slot], true, me, lane_of);
      if (after_reads) same |= against(r.global_reads[slot], false, me, lane_of);
      remember((a.write ? r.global_writes : r.global_reads)[slot], me, same || (a.write && me.first != me.second));
    }
    (a.write ? r.last_global_write : r.last_global_read) = r.clock;
  }
  // What several threads write alike is nobody's in particular.
  static void remember(Touch& last, const Touch& me, bool shared) {
    const bool meets = last.low <= me.low + me.bytes && me.low <= last.low + last.bytes;
    if (shared) {
      if (meets) last = {};
    } else if (meets && last.clock == me.clock && last.site == me.site && last.alike(me)) {  // the next warp's part of a row
      const Address end = std::max(last.low + last.bytes, me.low + me.bytes);
      last.low = std::min(last.low, me.low);
      last.bytes = static_cast<std::uint16_t>(end - last.low);
    } else {
      last = me;
    }
  }
};

}  // namespace

void check_within_block(Warp& w, const Instruction& i, const Access& a, const Rows& rows) {
  SharedRaces& r = *w.block->races;
  if (a.write && i.target == 1) released_to_all(r, w.number);
  if (i.is_volatile || a.size < 4) return;
  // Reads all over the place would cost most and are hardly ever followed by a write that they must come before.
  if (!a.write && (rows.count == 0 || rows.count > 2) && r.last_global_write < r.floor[w.number]) return;
  Checker checker{w, i, a, r};
  for (const Row& row : rows) checker.run(row.low, row.high, row.first, a.mask, a.shape == Access::Shape::uniform);
  if (rows.count) return;
  for (Mask m = a.mask; m; m &= m - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(m));
    checker.run(a.address[l], a.address[l] + a.size, l, 1u << l, true);
  }
}

}  // namespace sim
