// A block: its barriers, and the turns of its warps.
#include <algorithm>
#include <bit>
#include <utility>

#include "engine/checks/checks.h"
#include "engine/execution.h"
#include "engine/hang.h"

namespace sim {
namespace {

constexpr std::uint64_t longest_warp_slice = 1 << 16;
constexpr std::uint64_t report_every =
    1 << 16;  // instructions; more often, and the workers wait for each other's counting
constexpr std::uint64_t spin_cost =
    2048;  // of a block's slice: a block that waits for another should not wait for long

template <class F> void each_waiting(Block& block, std::uint32_t barrier, F f) {
  for (auto& w : block.warps) {
    for (auto& s : w->splits) {
      if (s.state == Split::State::barrier && s.barrier == barrier) f(*w, s);
    }
  }
}

// Of a barrier that is about to release: did all threads come, and to the same one?
void check_barrier(Block& block, std::uint32_t barrier, LaunchState& launch) {
  if (!launch.options.synccheck || launch.faulted) return;
  std::uint32_t first = ~0u, other = ~0u;
  bool aligned = false;
  each_waiting(block, barrier, [&](WarpState&, const Split& s) {
    aligned |= (launch.program.code[s.pc].target & 3) == 2;
    if (first == ~0u) first = s.pc;
    if (s.pc != first && other == ~0u) other = s.pc;
  });
  if (!aligned) return;
  const auto& b = block.barriers[barrier];
  if (other != ~0u) {
    if (launch.seen("divergent_barrier", first)) return;
    launch.report("divergent_barrier", "different", first, {launch.at(first, block), launch.at(other, block)});
  } else if (b.arrived < block.threads) {
    if (launch.seen("divergent_barrier", first, Severity::warning)) return;
    launch.report("divergent_barrier", "exited", first, {launch.at(first, block)},
                  {{"arrived", b.arrived}, {"threads", block.threads}}, Severity::warning);
  }
}

void release(Block& block, std::uint32_t barrier, LaunchState& launch) {
  Barrier& b = block.barriers[barrier];
  if (b.expected == 0) check_barrier(block, barrier, launch);
  std::uint32_t count = 0;
  bool all = true, any = false;
  each_waiting(block, barrier, [&](WarpState& w, const Split& s) {
    const Instruction& i = launch.program.code[s.pc];
    if (!(i.target >> 4)) return;
    w.warp.bank[frame_bank] = s.frame->registers;
    const Mask p = *lanes_at<Mask>(w.warp, i.o[3]) & s.mask;
    count += count_lanes(p);
    all &= p == s.mask;
    any |= p != 0;
  });
  LanesOfWarps lanes{};
  each_waiting(block, barrier, [&](WarpState& w, Split& s) {
    const Instruction& i = launch.program.code[s.pc];
    w.warp.bank[frame_bank] = s.frame->registers;
    lanes[w.warp.number] |= s.mask;
    w.converge(lanes[w.warp.number]);
    if (i.target >> 4 == 1) {
      auto* d = lanes_at<std::uint32_t>(w.warp, i.o[0]);
      for (Mask m = s.mask; m; m &= m - 1) d[std::countr_zero(m)] = count;
    } else if (i.target >> 4) {
      Mask& d = *lanes_at<Mask>(w.warp, i.o[0]);
      const bool value = i.target >> 4 == 2 ? all : any;
      d = (d & ~s.mask) | (value ? s.mask : 0);
    }
    s.state = Split::State::ready;
    ++s.pc;
  });
  block.warps[0]->warp.worker->progressed = true;
  b = Barrier{};
  block.barriers_in_use &= ~(1u << barrier);
  if (launch.late.count() != 0) [[unlikely]]
    launch.late.settle_of_lanes(block);
  synchronised(block, barrier, lanes);
}

}  // namespace

void arrive(WarpState& state, const Split& s, const Instruction& i, Mask m) {
  Warp& w = state.warp;
  Block& block = *w.block;
  Barrier& b = block.barriers[s.barrier];
  b.arrived += count_lanes(m);
  block.barriers_in_use |= 1u << s.barrier;
  if (i.target & 1) b.expected = lanes_at<std::uint32_t>(w, i.o[2])[std::countr_zero(m)];
  if (w.worker->counting) ++w.worker->counts.memory[i.site].barriers;
  release_if_complete(block, s.barrier);
}

bool release_if_complete(Block& block, std::uint32_t barrier) {
  const Barrier& b = block.barriers[barrier];
  if (b.arrived == 0 || b.arrived < (b.expected ? b.expected : block.live_threads)) return false;
  release(block, barrier, block.warps[0]->warp.worker->launch);
  return true;
}

void after_exit(WarpState& state, Mask gone, std::uint32_t) {
  Warp& w = state.warp;
  gone &= w.live;
  w.live &= ~gone;
  w.worker->progressed |= w.live == 0;
  w.block->live_threads -= count_lanes(gone);
  settle_collectives(state);
  for (Mask in_use = w.block->barriers_in_use; in_use; in_use &= in_use - 1)
    release_if_complete(*w.block, static_cast<std::uint32_t>(std::countr_zero(in_use)));
}

Stop run_block(Block& block, Worker& worker, std::uint64_t slice) {
  LaunchState& launch = worker.launch;
  const auto warp_slice = std::min(longest_warp_slice, 2 * slice);
  for (std::uint64_t used = 0; used < slice;) {
    bool ran = false, left = false;
    for (const auto n : block.order) {
      WarpState& w = *block.warps[n];
      if (w.done()) continue;
      if (!w.ready()) {
        left = true;
        continue;
      }
      const auto before = worker.clock, spins = worker.spins;
      ran = true;
      left |= run_warp(w, warp_slice) != Stop::done;
      const auto executed = worker.clock - before;
      used += executed + (worker.spins - spins) * spin_cost;
      worker.unreported += executed;
      const auto total = launch.executed.load(std::memory_order_relaxed) + worker.unreported;
      if (worker.unreported > report_every)
        launch.executed.fetch_add(std::exchange(worker.unreported, 0), std::memory_order_relaxed);
      if (launch.stop.load(std::memory_order_relaxed)) return Stop::done;
      if (std::exchange(worker.progressed, false)) launch.progress.store(total, std::memory_order_relaxed);
      if (over_budget(launch, w, total)) return Stop::done;
      if (worker.paused) return Stop::slice;
    }
    if (!left) return Stop::done;
    if (!ran) return Stop::waiting;
  }
  return Stop::slice;
}

void report_deadlock(Block& block, Worker& worker) {
  LaunchState& launch = worker.launch;
  const Split *collective = nullptr, *barrier = nullptr, *other = nullptr;
  const WarpState* warp = nullptr;
  for (const auto& w : block.warps) {
    for (const auto& s : w->splits) {
      if (s.state == Split::State::collective && !collective) {
        collective = &s;
        warp = w.get();
      }
      if (s.state != Split::State::barrier) continue;
      if (!barrier) barrier = &s;
      if (!other && (s.pc != barrier->pc || s.barrier != barrier->barrier)) other = &s;
    }
  }
  if (launch.faulted) {
    launch.stop = true;
    return;
  }
  std::optional<Finding> finding;
  std::uint32_t pc = 0;
  if (collective) {
    pc = collective->pc;
    const Mask missing = collective->members & warp->warp.live & ~collective->mask;
    Facts facts{{"lane", std::countr_zero(missing)}, {"warp", warp->warp.number}};
    if (std::popcount(missing) > 1) facts.emplace_back("more", std::popcount(missing) - 1);
    finding = launch.finding("missing_lanes", "never_come", pc, {launch.at(pc, block)}, std::move(facts));
  } else if (barrier && other) {
    pc = barrier->pc;
    finding = launch.finding("divergent_barrier", "forever", pc, {launch.at(pc, block), launch.at(other->pc, block)});
  } else if (barrier) {
    pc = barrier->pc;
    const Barrier& b = block.barriers[barrier->barrier];
    finding = launch.finding("deadlock", "too_few", pc, {launch.at(pc, block)},
                             {{"barrier", barrier->barrier},
                              {"threads", b.expected ? b.expected : block.live_threads},
                              {"arrived", b.arrived}});
  }
  if (finding && (launch.options.synccheck || finding->kind == "deadlock")) launch.findings.add(*finding);
  launch.fail(Fault::launch_timeout, "deadlock in " + launch.where(pc) + ": ", true, std::move(finding));
}

}  // namespace sim
