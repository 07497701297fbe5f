// What threads hand to each other within a block and between blocks: by barriers of the block and of a warp, by fences
// and flags, by mbarriers, and by asynchronous copies.
#include <algorithm>
#include <bit>

#include "engine/checks/causality.h"
#include "engine/checks/checks.h"
#include "engine/checks/races.h"
#include "engine/hooks.h"

namespace sim {
namespace {

SharedRaces* races_of(const Warp& w) { return w.worker->launch.options.racecheck ? w.block->races.get() : nullptr; }

template <class F> void each_lane(Mask lanes, F f) {
  for (; lanes; lanes &= lanes - 1) f(static_cast<std::uint32_t>(std::countr_zero(lanes)));
}

bool holds_all(Mask lanes, Mask all) { return (all & ~lanes) == 0; }

void find_floor(SharedRaces& r, std::uint32_t warp, std::size_t warps) {
  const auto& known = r.known[warp];
  r.floor[warp] = *std::min_element(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(warps));
}

// What these lanes know of their own block, with all that they have done.
Clocks clocks_of(const SharedRaces& r, const Warp& w, Mask lanes) {
  Clocks clocks;
  for (std::uint32_t v = 0; v < w.block->warps.size(); ++v) clocks.join_warp(v, r.known[w.number][v]);
  if (holds_all(lanes, w.started))
    clocks.join_warp(w.number, r.clock);
  else
    each_lane(lanes, [&](std::uint32_t l) { clocks.join_thread(w.number * lane_count + l, r.clock); });
  return clocks;
}

// All that these lanes carry, together.
View carried(const SharedRaces& r, const Warp& w, Mask lanes) {
  View all;
  if (const auto& apart = r.lane_views[w.number]) {
    const View* before = nullptr;
    each_lane(lanes, [&](std::uint32_t l) {
      const View& view = (*apart)[l];
      if (!before || view != *before) all.join(view);
      before = &view;
    });
  } else {
    all = r.views[w.number];
  }
  for (std::size_t reach = 0; reach < reaches && r.with_fences >> w.number & 1; ++reach) {
    const auto& fences = r.fences[w.number][reach];
    Clocks fenced;
    std::uint32_t oldest = ~0u;
    each_lane(w.started, [&](std::uint32_t l) { oldest = std::min(oldest, lanes >> l & 1 ? fences[l] : 0); });
    fenced.join_warp(w.number, oldest);
    each_lane(lanes, [&](std::uint32_t l) { fenced.join_thread(w.number * lane_count + l, fences[l]); });
    all.fenced[reach].join(r.block, std::move(fenced));
  }
  all.known.join(r.block, clocks_of(r, w, lanes));
  return all;
}

// What all lanes of a warp know of their block is looked up most.
void raise_known(SharedRaces& r, const Warp& w, const Past& known) {
  const Clocks* own = known.of(r.block);
  if (!own) return;
  for (std::uint32_t v = 0; v < w.block->warps.size(); ++v)
    r.known[w.number][v] = std::max(r.known[w.number][v], own->of_warp(v));
  find_floor(r, w.number, w.block->warps.size());
}

// f(view) for that of each of these lanes.
template <class F> void change_views(SharedRaces& r, const Warp& w, Mask lanes, F f) {
  note_reads(r);
  r.views_used = true;
  auto& apart = r.lane_views[w.number];
  if (!apart && holds_all(lanes, w.live)) {
    f(r.views[w.number]);
    return raise_known(r, w, r.views[w.number].known);
  }
  if (!apart) {
    apart = std::make_unique<SharedRaces::LaneViews>();
    apart->fill(r.views[w.number]);
  }
  View before, after;
  bool first = true;
  each_lane(lanes, [&](std::uint32_t l) {
    View& view = (*apart)[l];
    if (first || view != before) {
      before = view;
      f(view);
      after = view;
    } else {
      view = after;
    }
    first = false;
  });
}

// Lanes of these warps go on with all that each of them has brought. Exited lanes of a warp are among those that a
// barrier of the block orders.
void meet(Block& block, const LanesOfWarps& lanes, const View* brought, bool exited) {
  SharedRaces& r = *block.races;
  const auto count = static_cast<std::uint32_t>(block.warps.size());
  const auto all_of = [&](std::uint32_t n) {
    const Warp& w = block.warps[n]->warp;
    return lanes[n] | (exited ? w.started & ~w.live : 0);
  };
  bool whole = true;
  for (std::uint32_t n = 0; n < count; ++n)
    whole = whole && (!lanes[n] || holds_all(all_of(n), block.warps[n]->warp.started));
  std::array<std::uint32_t, lane_count> joined{};
  for (std::uint32_t n = 0; n < count; ++n) {
    if (!lanes[n]) continue;
    for (std::uint32_t v = 0; v < count; ++v) joined[v] = std::max(joined[v], r.known[n][v]);
  }
  const bool carries = r.views_used || brought || !whole;
  View all;
  if (carries) {
    if (brought) all = *brought;
    for (std::uint32_t n = 0; n < count; ++n) {
      if (lanes[n]) all.join(carried(r, block.warps[n]->warp, all_of(n)));
    }
  }
  for (std::uint32_t n = 0; n < count; ++n) {
    if (lanes[n] && holds_all(all_of(n), block.warps[n]->warp.started)) joined[n] = r.clock;
  }
  for (std::uint32_t n = 0; n < count; ++n) {
    const Warp& w = block.warps[n]->warp;
    if (!lanes[n]) continue;
    if (!holds_all(lanes[n], w.live)) {
      change_views(r, w, lanes[n], [&](View& view) { view = all; });
      continue;
    }
    r.known[n] = joined;
    find_floor(r, n, count);
    if (!carries) continue;
    r.views_used = true;
    r.lane_views[n].reset();
    r.views[n] = all;
    r.with_fences &= ~(1u << n);
    raise_known(r, w, all.known);
  }
}

// The copies of a thread whose group is before `group` are done: as if it had just written what they filled.
void finish(SharedRaces& r, std::uint32_t thread, std::uint32_t group) {
  auto& copies = r.copies[thread];
  const auto done = [&](const SharedRaces::Copy& c) {
    if (c.group >= group) return false;
    if (r.filling[c.granule] == thread + 1) {
      r.filling[c.granule] = 0;
      r.writer[c.granule] = r.clock << SharedRaces::thread_bits | thread;
      r.writer_site[c.granule] = c.site;
    }
    return true;
  };
  note_reads(r);
  r.shared_written = {0, ~Address{0}};
  r.last_shared_write = r.clock;
  r.in_flight -= std::erase_if(copies, done);
}

}  // namespace

const View& view_of(const SharedRaces& r, std::uint32_t warp, std::uint32_t lane) {
  return r.lane_views[warp] ? (*r.lane_views[warp])[lane] : r.views[warp];
}

const char* missing_order(const SharedRaces& r, std::uint32_t stamp, std::uint32_t warp, std::uint32_t lane) {
  const std::uint32_t clock = stamp >> SharedRaces::thread_bits,
                      thread = stamp & ((1u << SharedRaces::thread_bits) - 1);
  const std::uint32_t other_warp = thread / lane_count;
  const View& view = view_of(r, warp, lane);
  const auto of_block = [&](const Past& past) {
    const Clocks* clocks = past.of(r.block);
    return clocks ? *clocks : Clocks{};
  };
  if (of_block(view.awaited[within_block]).covers(thread, clock)) return "no_fence_of_block";
  if (other_warp != warp && of_block(view.known).covers_some_lane(other_warp, clock)) return "of_another_lane";
  if (other_warp == warp && r.lane_views[warp]) return "no_syncwarp_of_both";
  return other_warp == warp ? "no_syncwarp" : "no_syncthreads";
}

void forget_views(SharedRaces& r) {
  if (!r.views_used && !r.with_fences && r.phases.empty() && r.locations.empty()) return;
  r.views = {};
  for (auto& apart : r.lane_views) apart.reset();
  r.arrivals = {};
  r.fences = {};
  r.with_fences = 0;
  r.locations.clear();
  r.phases.clear();
  r.looks.clear();
  r.views_used = false;
  r.unsure = 0;
}

// "bar.warp.sync" orders the lanes of its mask, which are those that take part.
void synchronised(Warp& w, Mask lanes) {
  SharedRaces* r = races_of(w);
  if (!r) return;
  if (r->unsure >> w.number & 1) look_again(w);
  tick(*r);
  if (!r->views_used && holds_all(lanes, w.started)) {
    const bool lowest = r->floor[w.number] == r->known[w.number][w.number];
    r->known[w.number][w.number] = r->clock;
    if (lowest) find_floor(*r, w.number, w.block->warps.size());
    return;
  }
  LanesOfWarps all{};
  all[w.number] = lanes;
  meet(*w.block, all, nullptr, false);
}

// The PTX ISA does not order memory accesses by a shuffle or a vote. We let a write behind it follow a read before it
// all the same: a kernel that reads a row, reduces it by shuffles and writes it has its values before it writes.
void passed_values(Warp& w, Mask lanes) {
  SharedRaces* r = races_of(w);
  if (!r || !holds_all(lanes, w.live)) return;
  tick(*r);
  r->values_passed[w.number] = r->clock;
}

// "A bar.sync, bar.red or bar.arrive operation synchronizes with a bar.sync or bar.red operation executed on the same
// barrier": who only arrives learns nothing.
void synchronised(Block& block, std::uint32_t barrier, const LanesOfWarps& lanes) {
  if (!block.races) return;
  SharedRaces& r = *block.races;
  std::uint32_t threads = 0;
  for (const Mask m : lanes) threads += count_lanes(m);
  View& arrivals = r.arrivals[barrier];
  const bool some_arrived = static_cast<bool>(arrivals.known);
  for (std::uint32_t n = 0; n < block.warps.size() && r.unsure; ++n) {
    if (lanes[n] && r.unsure >> n & 1) look_again(block.warps[n]->warp);
  }
  if (threads == block.live_threads) {
    r.unnoted.clear();
    r.unnoted_rows.clear();
  }
  note_rows(r);
  tick(r);
  if (threads == block.threads && !r.views_used && !some_arrived) {  // all of the block, mostly
    const std::size_t count = block.warps.size();
    for (std::size_t n = 0; n < count; ++n) std::fill_n(r.known[n].begin(), count, r.clock);
    std::fill_n(r.floor.begin(), count, r.clock);
    r.written = r.read = r.shared_written = {};
    return;
  }
  meet(block, lanes, some_arrived ? &arrivals : nullptr, true);
  if (some_arrived) arrivals = {};
  const std::uint32_t lowest =
      *std::min_element(r.floor.begin(), r.floor.begin() + static_cast<std::ptrdiff_t>(block.warps.size()));
  if (lowest > std::max(r.last_global_write, r.last_global_read)) r.written = r.read = {};
  if (lowest > r.last_shared_write) r.shared_written = {};
}

void arrived(Warp& w, std::uint32_t barrier, Mask lanes) {
  SharedRaces* r = races_of(w);
  if (!r) return;
  if (r->unsure >> w.number & 1) look_again(w);
  tick(*r);
  r->arrivals[barrier].join(carried(*r, w, lanes));
}

// An arrival at an mbarrier is a release, a wait that succeeds an acquire: each of the thread that executes it.
void arrived(Warp& w, Mask lanes, const std::uint64_t* addresses) {
  SharedRaces* r = races_of(w);
  if (!r) return;
  if (r->unsure >> w.number & 1) look_again(w);
  tick(*r);
  while (lanes) {
    const Address address = addresses[std::countr_zero(lanes)];
    Mask here = 0;
    each_lane(lanes, [&](std::uint32_t l) { here |= Mask{addresses[l] == address} << l; });
    r->phases[address].arrived.join(carried(*r, w, here));
    lanes &= ~here;
  }
}

void completed(Warp& w, std::uint64_t address) {
  if (SharedRaces* r = races_of(w)) r->phases[address].complete = r->phases[address].arrived;
}

void waited(Warp& w, Mask lanes, const std::uint64_t* addresses) {
  SharedRaces* r = races_of(w);
  if (!r) return;
  while (lanes) {
    const Address address = addresses[std::countr_zero(lanes)];
    Mask here = 0;
    each_lane(lanes, [&](std::uint32_t l) { here |= Mask{addresses[l] == address} << l; });
    lanes &= ~here;
    const auto phases = r->phases.find(address);
    if (phases == r->phases.end()) continue;
    change_views(*r, w, here, [&](View& view) { view.join(phases->second.complete); });
  }
}

// "Release and Acquire Patterns": a fence makes what strong reads before it have taken known, and all that is known
// ready for strong writes behind it.
void fence(Warp& w, const Instruction& i, Mask lanes) {
  LateReductions& late = w.worker->launch.late;
  if (late.count() != 0) late.settle_of_lanes(w);
  if (!i.of_block) late.settle(w.block->number);
  fence_global(w, i);
  SharedRaces* r = races_of(w);
  if (!r) return;
  fence_lock(*r, w.number);
  if (!w.worker->launch.program.hands_over()) return;
  if (r->unsure >> w.number & 1) look_again(w);
  tick(*r);
  Clocks own;
  for (std::uint32_t v = 0; v < w.block->warps.size(); ++v) own.join_warp(v, r->known[w.number][v]);
  const std::size_t reach = i.of_block ? within_block : between_blocks;
  change_views(*r, w, lanes, [&](View& view) {
    for (std::size_t n = 0; n <= reach; ++n) {
      view.known.join(view.awaited[n]);
      view.awaited[n] = {};
    }
    if (!i.of_block) view.counted = {};
    for (std::size_t n = 0; n <= reach; ++n) {
      view.fenced[n].join(view.known);
      view.fenced[n].join(r->block, own);
    }
  });
  for (std::size_t n = 0; n <= reach; ++n)
    each_lane(lanes, [&](std::uint32_t l) { r->fences[w.number][n][l] = r->clock; });
  r->with_fences |= 1u << w.number;
}

namespace {

struct HandOver {
  Warp& w;
  const Instruction& i;
  const Access& a;
  SharedRaces& r;
  std::unordered_map<Address, Location>& list;
  bool several = false;  // workers: a location keeps what it had, as another may just be reading it

  // "Morally strong operations": each scope includes the other thread, and they overlap completely.
  bool reaches_from(const Location& location) const {
    return location.size == a.size && (location.block == r.block || (!location.narrow && !i.of_block));
  }
  void read(Mask lanes, const Location& location) const {
    if (!reaches_from(location)) return;
    const bool same = location.block == r.block;
    change_views(r, w, lanes, [&](View& view) {
      for (const Reach reach : {within_block, between_blocks}) {
        if (reach == within_block && !same) continue;
        if (!location.fenced[reach]) continue;
        if (i.acquires && (same || reach == between_blocks))
          view.known.join(location.fenced[reach]);
        else
          view.awaited[reach].join(location.fenced[reach]);
      }
      if (a.atomic && !i.acquires) view.counted.join(location.fenced[between_blocks]);
    });
  }
  std::array<Past, reaches> released(std::uint32_t lane) const {
    auto fenced = view_of(r, w.number, lane).fenced;
    const Mask self = Mask{1} << lane;
    for (std::size_t reach = 0; reach < reaches; ++reach) {
      if (const std::uint32_t clock = r.with_fences >> w.number & 1 ? r.fences[w.number][reach][lane] : 0) {
        Clocks own;
        own.join_thread(w.number * lane_count + lane, clock);
        fenced[reach].join(r.block, std::move(own));
      }
      if (i.releases && !(i.of_block && reach == between_blocks)) fenced[reach].join(carried(r, w, self).known);
    }
    return fenced;
  }
  void write(std::uint32_t lane) const {
    const std::uint32_t thread = w.number * lane_count + lane;
    auto own = released(lane);
    auto at = list.find(a.address[lane]);
    if (at == list.end()) {
      if (!own[within_block] && !own[between_blocks]) return;
      at = list.try_emplace(a.address[lane]).first;
    }
    Location& location = at->second;
    const bool same_block = location.block == r.block, hands_on = several || (a.atomic && reaches_from(location));
    const bool goes_on = same_block && location.thread == thread;
    auto fenced = own;
    for (const Reach reach : {within_block, between_blocks}) {
      if (goes_on) own[reach].join(location.own[reach]);
      if (goes_on) fenced[reach].join(location.own[reach]);
      if (hands_on && (same_block || reach == between_blocks)) fenced[reach].join(location.fenced[reach]);
    }
    location = {.block = r.block,
                .thread = thread,
                .size = a.size,
                .narrow = i.of_block,
                .fenced = std::move(fenced),
                .own = std::move(own)};
  }
  void run() const {
    const bool reads = !a.write || (a.atomic && !i.reduces);
    if (!a.write && a.shape == Access::Shape::uniform) {
      if (const auto at = list.find(a.low); at != list.end()) read(a.mask, at->second);
      return;
    }
    each_lane(a.mask, [&](std::uint32_t l) {
      if (const auto at = reads ? list.find(a.address[l]) : list.end(); at != list.end())
        read(Mask{1} << l, at->second);
      if (a.write) write(l);
    });
  }
};

}  // namespace

void hand_over(Warp& w, const Instruction& i, const Access& a) {
  SharedRaces* r = races_of(w);
  if (!r || !i.strong || !w.worker->launch.program.hands_over()) return;
  if (a.write) tick(*r);
  if (a.space == ptx::Space::shared) {
    if (!a.write || (a.atomic && !i.reduces))
      each_lane(a.mask, [&](std::uint32_t l) { r->looks[a.address[l] >> r->shift << 5 | w.number] = r->clock; });
    return HandOver{w, i, a, *r, r->locations}.run();
  }
  if (!w.worker->launch.races) return;
  Locations& global = locations(*w.worker->launch.races);
  const bool several = w.worker->launch.options.threads > 1;
  {
    const std::lock_guard lock(global.mutex);
    HandOver{w, i, a, *r, global.list, several}.run();
  }
  if (!several || (a.write && (!a.atomic || i.reduces))) return;
  auto& last = r->last_looks[w.number];
  if (!last) last = std::make_unique<SharedRaces::Look>();
  *last = {&i, a};
  last->access.write = false;
  r->unsure |= 1u << w.number;
}

void look_again(Warp& w) {
  SharedRaces& r = *w.block->races;
  r.unsure &= ~(1u << w.number);
  const SharedRaces::Look& last = *r.last_looks[w.number];
  Locations& global = locations(*w.worker->launch.races);
  const std::lock_guard lock(global.mutex);
  HandOver{w, *last.instruction, last.access, r, global.list, true}.run();
}

void copied(Warp& w, const Instruction& i, const Access& a) {
  SharedRaces* r = races_of(w);
  if (!r) return;
  if (r->filling.empty()) {
    r->filling.assign(r->writer.size(), 0);
    r->filling_site.assign(r->writer.size(), 0);
    r->copies.resize(w.block->threads);
    r->groups.assign(w.block->threads, 0);
  }
  each_lane(a.mask & ~a.outside, [&](std::uint32_t l) {
    const std::uint32_t thread = w.number * lane_count + l;
    for (std::uint64_t g = a.address[l] >> r->shift; g <= (a.address[l] + a.size - 1) >> r->shift; ++g) {
      r->copies[thread].push_back({g, r->groups[thread], i.site});
      r->filling[g] = static_cast<std::uint16_t>(thread + 1);
      r->filling_site[g] = i.site;
      ++r->in_flight;
    }
  });
}

void commit_copies(Warp& w, const Instruction&, Mask lanes) {
  SharedRaces* r = races_of(w);
  if (!r || r->groups.empty()) return;
  each_lane(lanes, [&](std::uint32_t l) { ++r->groups[w.number * lane_count + l]; });
}

void await_copies(Warp& w, const Instruction& i, Mask lanes) {
  if (i.offset < 0) return finish_copies(w, lanes);
  SharedRaces* r = races_of(w);
  if (!r || !r->in_flight) return;
  each_lane(lanes, [&](std::uint32_t l) {
    const std::uint32_t thread = w.number * lane_count + l;
    const auto running = static_cast<std::uint32_t>(std::min<std::int64_t>(i.offset, r->groups[thread]));
    finish(*r, thread, r->groups[thread] - running);
  });
}

void finish_copies(Warp& w, Mask lanes) {
  SharedRaces* r = races_of(w);
  if (!r || !r->in_flight) return;
  each_lane(lanes, [&](std::uint32_t l) { finish(*r, w.number * lane_count + l, ~0u); });
}

void forget_copies(SharedRaces& r) {
  if (r.in_flight) std::fill(r.filling.begin(), r.filling.end(), 0);
  for (auto& copies : r.copies) copies.clear();
  r.in_flight = 0;
}

}  // namespace sim
