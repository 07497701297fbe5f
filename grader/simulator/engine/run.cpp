// The run loop of a warp. Lanes that go together are a split; the one furthest behind runs, so that loops and branches
// come together again by themselves.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "engine/checks/checks.h"
#include "engine/execution.h"
#include "engine/hang.h"

namespace sim {
namespace {

constexpr std::uint64_t quantum = 4096;      // instructions of one split while others are ready
constexpr std::uint64_t spin_cost = 1024;    // what a volatile load takes of a slice: it may be a spin loop
constexpr std::uint64_t nap = 1 << 14;       // what nanosleep takes of it, and a wait for an mbarrier
constexpr std::uint32_t max_depth = 2048;    // calls inside each other
constexpr std::uint32_t most_interruptions = 12;    // of a block, behind atomics with results and behind all else
constexpr std::uint32_t few_interruptions = 4;     // likewise, where blocks run beside each other anyway
constexpr std::uint8_t most_interruptions_at = 3;  // at one place of its code
constexpr int most_steps_back = 4;                 // of a warp
constexpr std::uint32_t most_passings = 4;         // of a block

// Of collectives: bar.warp.sync "guarantees memory ordering among participating threads"; shuffles, votes, matches,
// reductions and matrix instructions do not ("Parallel Synchronization and Communication Instructions"). The compiler
// of Triton knows its GPU: what a lane has read is there when others have it from a shuffle.
void met(WarpState& state, const Instruction& i, Mask lanes) {
  Warp& w = state.warp;
  state.converge(lanes);
  if (i.offset == 0 && w.worker->launch.late.count() != 0) [[unlikely]]
    w.worker->launch.late.settle_of_lanes(w);
  if (i.offset == 0 || w.worker->launch.program.of_triton)
    synchronised(w, lanes);
  else
    passed_values(w, lanes);
}

Mask& predicate_at(const Warp& w, Slot s) { return *lanes_at<Mask>(w, s); }

class Runner {
 public:
  Runner(WarpState& state, std::uint64_t slice)
      : state_(state),
        w_(state.warp),
        worker_(*w_.worker),
        launch_(worker_.launch),
        code_(launch_.program.code.data()),
        left_(static_cast<std::int64_t>(slice)) {}

  Stop run() {
    while (!state_.splits.empty()) {
      if (left_ <= 0) return Stop::slice;
      const int chosen = choose();
      if (chosen < 0) return Stop::waiting;
      run_split(static_cast<std::size_t>(chosen));
    }
    return Stop::done;
  }

 private:
  // The deepest call, then the smallest pc; after a quantum, the one that has waited longest. Merges equal ones.
  int choose() {
    auto& splits = state_.splits;
    int best = -1;
    limit_ = ~0u;
    for (std::size_t n = 0; n < splits.size(); ++n) {
      Split& s = splits[n];
      if (s.state != Split::State::ready) continue;
      if (best < 0) {
        best = static_cast<int>(n);
        continue;
      }
      Split& b = splits[static_cast<std::size_t>(best)];
      if (s.frame == b.frame && s.pc == b.pc && !s.passed && !b.passed) {
        b.mask |= s.mask;
        drop_frame(state_, s.frame);
        splits.erase(splits.begin() + static_cast<std::ptrdiff_t>(n--));
        continue;
      }
      const bool better = rotate_                            ? s.turn < b.turn
                          : s.frame->depth != b.frame->depth ? s.frame->depth > b.frame->depth
                                                             : s.pc < b.pc;
      if (better) best = static_cast<int>(n);
    }
    if (best >= 0 && splits.size() > 1) {
      const Split& b = splits[static_cast<std::size_t>(best)];
      // Once more for merges that the first pass could not see.
      for (std::size_t n = 0; n < splits.size(); ++n) {
        const Split& s = splits[n];
        if (static_cast<int>(n) == best || s.state != Split::State::ready) continue;
        others_ = true;
        if (s.frame == b.frame && s.pc > b.pc && !rotate_) limit_ = std::min(limit_, s.pc);
        if (s.frame == b.frame && s.pc == b.pc && !s.passed && !b.passed) {
          splits[static_cast<std::size_t>(best)].mask |= s.mask;
          drop_frame(state_, s.frame);
          splits.erase(splits.begin() + static_cast<std::ptrdiff_t>(n));
          return choose();
        }
      }
    }
    return best;
  }

  void account(std::uint32_t start, std::uint32_t end, Mask mask) {
    const auto n = static_cast<std::int64_t>(end) - start;
    left_ -= n;
    worker_.clock += static_cast<std::uint64_t>(n);
    if (worker_.counting && n) {
      const std::int64_t lanes = count_lanes(mask);
      auto& c = worker_.counts;
      c.starts[start] += 1;
      c.starts[end] -= 1;
      c.lanes[start] += lanes;
      c.lanes[end] -= lanes;
    }
  }

  void run_split(std::size_t number) {
    Split& s = state_.splits[number];
    s.turn = ++state_.turns;
    rotate_ = false;
    const bool others = std::exchange(others_, false);
    Frame* const frame = s.frame;
    w_.bank[frame_bank] = frame->registers;
    w_.local_top = frame->local_top;
    worker_.frame = frame;
    const std::int64_t quantum_end = others ? left_ - static_cast<std::int64_t>(quantum) : 0;
    std::uint32_t pc = s.pc, start = pc;
    Mask mask = s.mask;
    const std::uint32_t limit = limit_;
    if (s.passed) [[unlikely]]
      if (!catch_up(number, mask)) return;
    const Instruction* passed = nullptr;
    Mask passed_mask = 0;
    while (true) {
      const Instruction& i = code_[pc];
      Mask m = mask;
      if (i.guard) {
        const Mask p = predicate_at(w_, i.guard);
        m &= i.guard_negated ? ~p : p;
        if (m != mask && worker_.counting) worker_.counts.skipped[pc] += count_lanes(mask & ~m);
        if (!worker_.ways.empty()) {
          worker_.ways[pc] |= static_cast<std::uint8_t>((m ? taken_way : 0) | (m != mask ? passed_way : 0));
        }
      }
      if (frame->unwritten) [[unlikely]]
        follow_unwritten(state_, *frame, pc, mask, m);
      switch (i.flow) {
        case Flow::plain:
          if (m) i.run(w_, i, m);
          ++pc;
          break;
        case Flow::memory:
          if (passed && !m) [[unlikely]]  // its guard is false
            passed->run(w_, *std::exchange(passed, nullptr), passed_mask);
          if (m) {
            if (i.may_be_passed && !passed && lets_pass()) [[unlikely]] {
              passed = &i;
              passed_mask = m;
              ++pc;
              break;
            }
            if (passed) [[unlikely]] {
              if (i.passes && m == passed_mask && !meet(*passed, i, m)) {
                ++w_.block->passings;
                i.run(w_, i, m);
                account(start, pc + 1, mask);
                save(number, pc + 1, mask);
                state_.splits[number].passed = passed;
                state_.splits[number].passed_mask = passed_mask;
                worker_.paused = true;
                left_ = 0;
                return;
              }
              passed->run(w_, *std::exchange(passed, nullptr), passed_mask);
            }
            const bool may_pause = i.publishes || (i.draws && worker_.at_draw);
            if (may_pause && worker_.to_pause == Pause::before) [[unlikely]] {
              // The instruction comes again, and is counted then.
              if (m != mask && worker_.counting) worker_.counts.skipped[pc] -= count_lanes(mask & ~m);
              account(start, pc, mask);
              save(number, pc, mask);
              pause();
              return;
            }
            i.run(w_, i, m);
            if (i.may_spin || i.polls) {
              left_ -= static_cast<std::int64_t>(i.waits ? nap : spin_cost);
              ++worker_.spins;
            }
            if (may_pause && worker_.to_pause == Pause::after) [[unlikely]]
              pause();
            if (w_.fallen) [[unlikely]] {
              const Mask gone = std::exchange(w_.fallen, 0);
              mask &= ~gone;
              account(start, pc + 1, mask);
              save(number, pc + 1, mask);
              leave(number, gone, pc);
              return;
            }
            if (i.draws_in_block && steps_back(i.site)) [[unlikely]] {
              account(start, pc + 1, mask);
              save(number, pc + 1, mask);
              left_ = 0;
              return;
            }
            if (i.lets_others_run && worker_.interrupts && interrupted(i)) [[unlikely]] {
              account(start, pc + 1, mask);
              save(number, pc + 1, mask);
              worker_.paused = true;
              left_ = 0;
              return;
            }
          }
          ++pc;
          break;
        case Flow::branch:
          account(start, pc + 1, mask);
          if (m && worker_.trail) [[unlikely]]
            worker_.trail->jumped(w_, pc, i.target, frame->depth);
          if (m == 0) {
            start = ++pc;
          } else if (m == mask) {
            start = pc = i.target;
          } else {
            save(number, pc + 1, mask & ~m);
            state_.part(m);
            add({.pc = i.target, .mask = m, .frame = frame});
            return;
          }
          if (left_ <= quantum_end) [[unlikely]] {
            rotate_ = others;
            save(number, pc, mask);
            return;
          }
          break;
        case Flow::yield:
          left_ -= static_cast<std::int64_t>(nap);
          ++worker_.spins;
          ++pc;
          break;
        case Flow::active:
          if (const Mask apart = m & ~state_.together(m, w_.live)) {
            account(start, pc, mask);
            start = pc;
            add({.pc = pc, .mask = apart, .frame = frame});
            mask &= ~apart;
            m &= ~apart;
            save(number, pc, mask);
            others_ = true;
          }
          if (m) i.run(w_, i, m);
          ++pc;
          break;
        case Flow::clock:
          account(start, pc, mask);
          start = pc;
          read_clock(i, m);
          ++pc;
          break;
        default:
          account(start, pc + 1, mask);
          if (m == 0) {
            start = ++pc;
            break;
          }
          if (m != mask) {
            save(number, pc + 1, mask & ~m);
            add({.pc = pc, .mask = m, .frame = frame});
            control(state_.splits.size() - 1, i, pc, m);
            return;
          }
          if (i.flow == Flow::collective && collective_at_once(i, m)) {
            start = ++pc;
            break;
          }
          save(number, pc, mask);
          control(number, i, pc, m);
          return;
      }
      if (pc >= limit) {
        if (passed) passed->run(w_, *passed, passed_mask);
        account(start, pc, mask);
        save(number, pc, mask);
        return;
      }
    }
  }

  void pause() {
    worker_.to_pause = Pause::never;
    worker_.paused = true;
    left_ = 0;
  }

  // In the reversed order every second warp lets the others go on once behind atomics in shared memory that tell it
  // what they have done so far, and ahead of barriers for a number of threads. The last one to run does not, so that it
  // finds what these have not done yet. While one waits the others may come to their end, so half of them do not wait
  // at the first of these places that they meet.
  bool steps_back(std::uint32_t site) {
    Block& block = *w_.block;
    auto& met = block.stepped_back[w_.number];
    const std::uint64_t bit = std::uint64_t{1} << site % 64;
    if (worker_.launch.options.order != Order::reversed || met & bit || std::popcount(met) == most_steps_back)
      return false;
    if (w_.number % 2 != block.number % 2 || w_.number == block.order.back()) return false;
    const bool first = met == 0;
    met |= bit;
    return !first || w_.number / 2 % 2 != 0;
  }

  // At about every second place, so that others run between two things that the block tells them or sees of them.
  bool interrupted(const Instruction& i) {
    Block& block = *w_.block;
    const std::uint64_t place = block.number << 32 | block.offers++;
    auto& of_kind = block.interruptions[i.draws];
    auto& here = block.interrupted_at[i.site % block.interrupted_at.size()];
    const auto most = launch_.options.threads > 1 ? few_interruptions : most_interruptions;
    if (of_kind >= most || here >= most_interruptions_at) return false;
    if (place * 0x9e3779b97f4a7c15u >> 63) return false;
    ++of_kind;
    ++here;
    return true;
  }

  // In the reversed order, in every second block, a relaxed atomic may take place before the one ahead of it.
  bool lets_pass() const {
    const Block& block = *w_.block;
    return launch_.options.order == Order::reversed && launch_.options.threads <= 1 && launch_.blocks > 1 &&
           block.number % 2 == 1 && block.passings < most_passings;
  }

  // Whether a lane's two atomics are on the same bytes, where its own order counts.
  bool meet(const Instruction& first, const Instruction& second, Mask m) const {
    const auto address = [&](const Instruction& i, unsigned lane) {
      return lanes_at<Address>(w_, i.o[i.reduces ? 0 : 1])[lane] + static_cast<Address>(i.offset);
    };
    for (; m; m &= m - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(m));
      const Address a = address(first, lane), b = address(second, lane);
      if (a < b + second.size && b < a + first.size) return true;
    }
    return false;
  }

  // The atomic that another one has passed takes place. Returns whether lanes are left.
  bool catch_up(std::size_t number, Mask& mask) {
    Split& s = state_.splits[number];
    const Instruction& passed = *std::exchange(s.passed, nullptr);
    passed.run(w_, passed, s.passed_mask);
    if (!w_.fallen) return true;
    const Mask gone = std::exchange(w_.fallen, 0);
    mask &= ~gone;
    save(number, s.pc, mask);
    leave(number, gone, passed.site);
    return false;
  }

  void save(std::size_t number, std::uint32_t pc, Mask mask) {
    state_.splits[number].pc = pc;
    state_.splits[number].mask = mask;
  }
  void add(Split s) {
    s.turn = state_.turns;
    ++s.frame->users;
    state_.splits.push_back(s);
  }
  void erase(std::size_t number) {
    drop_frame(state_, state_.splits[number].frame);
    state_.splits.erase(state_.splits.begin() + static_cast<std::ptrdiff_t>(number));
  }

  // Lanes end, by exit or by a fault.
  void leave(std::size_t number, Mask gone, std::uint32_t pc) {
    if (state_.splits[number].mask == 0) erase(number);
    after_exit(state_, gone, pc);
  }

  // All lanes of every member mask are here: no need to wait.
  bool collective_at_once(const Instruction& i, Mask m) {
    const Mask* members = lanes_at<Mask>(w_, i.o[i.offset]);
    const Mask first = members[std::countr_zero(m)];
    if ((first & w_.live) != m) return false;
    Mask differ = 0;
    if (i.o[i.offset] >> bank_shift == constant_bank) {
      i.run(w_, i, m);
      met(state_, i, m);
      return true;
    }
    for (unsigned l = 0; l < lane_count; ++l) differ |= m >> l & 1 ? members[l] ^ first : 0;
    if (differ) return false;
    i.run(w_, i, m);
    met(state_, i, m);
    return true;
  }

  void collective(std::size_t number, const Instruction& i, std::uint32_t pc, Mask m) {
    const Mask* members = lanes_at<Mask>(w_, i.o[i.offset]);
    Frame* const frame = state_.splits[number].frame;
    Mask left = m;
    std::vector<Split> groups;
    while (left) {
      const Mask value = members[std::countr_zero(left)];
      Mask group = 0;
      for (Mask k = left; k; k &= k - 1) {
        const int l = std::countr_zero(k);
        if (members[l] == value) group |= 1u << l;
      }
      left &= ~group;
      if (group & ~value) outside_own_mask(w_, i, group & ~value, value);
      groups.push_back(
          {.state = Split::State::collective, .pc = pc, .mask = group, .frame = frame, .members = value | group});
    }
    erase_keeping_frame(number);
    for (const Split& g : groups) {
      const auto same = std::find_if(state_.splits.begin(), state_.splits.end(), [&](const Split& s) {
        return s.state == Split::State::collective && s.pc == pc && s.frame == frame && s.members == g.members;
      });
      if (same != state_.splits.end()) {
        same->mask |= g.mask;
      } else {
        add(g);
      }
    }
    drop_frame(state_, frame);
    settle_collectives(state_);
  }
  void erase_keeping_frame(std::size_t number) {
    state_.splits.erase(state_.splits.begin() + static_cast<std::ptrdiff_t>(number));
  }

  void control(std::size_t number, const Instruction& i, std::uint32_t pc, Mask m) {
    switch (i.flow) {
      case Flow::table: return branch_table(number, i, m);
      case Flow::call: return call(number, i, pc, m);
      case Flow::ret: return ret(number);
      case Flow::exit: save(number, pc, 0); return leave(number, m, pc);
      case Flow::barrier: {
        if ((i.target & 1) && steps_back(i.site)) {  // others may complete it, if it is of their number
          left_ = 0;
          return;
        }
        Split& s = state_.splits[number];
        s.state = Split::State::barrier;
        s.barrier = lanes_at<std::uint32_t>(w_, i.o[1])[std::countr_zero(m)] & 15;
        return arrive(state_, s, i, m);
      }
      case Flow::arrive: {
        Split s = state_.splits[number];
        s.barrier = lanes_at<std::uint32_t>(w_, i.o[1])[std::countr_zero(m)] & 15;
        save(number, pc + 1, m);
        arrived(w_, s.barrier, m);
        return arrive(state_, s, i, m);
      }
      case Flow::collective: return collective(number, i, pc, m);
      case Flow::unknown:
        launch_.lacks(launch_.program.unknown[i.target]);
        state_.splits.clear();
        return;
      default:
        launch_.fail(Fault::launch_failure,
                     "trap in " + launch_.where(pc) + " by " +
                         name_thread(launch_, *w_.block, w_.number, static_cast<std::uint32_t>(std::countr_zero(m))),
                     true);
        state_.splits.clear();
    }
  }

  void branch_table(std::size_t number, const Instruction& i, Mask m) {
    const auto& targets = launch_.program.branch_tables[i.target];
    const auto* index = lanes_at<std::uint32_t>(w_, i.o[0]);
    Frame* const frame = state_.splits[number].frame;
    bool first = true;
    for (std::size_t n = 0; n < targets.size() && m; ++n) {
      Mask taken = 0;
      for (Mask k = m; k; k &= k - 1) {
        const int l = std::countr_zero(k);
        if (std::min<std::size_t>(index[l], targets.size() - 1) == n) taken |= 1u << l;
      }
      if (!taken) continue;
      m &= ~taken;
      if (first) {
        save(number, targets[n], taken);
      } else {
        state_.part(taken);
        add({.pc = targets[n], .mask = taken, .frame = frame});
      }
      first = false;
    }
  }

  // Calls inside each other use up what a thread has for its own variables.
  void overflow_stack(const Frame& caller, std::uint32_t pc, Mask m) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
    const Finding finding = launch_.finding("local_oob", "calls", pc, {launch_.at(pc, *w_.block, w_.number, lane)},
                                            {{"depth", std::uint64_t{caller.depth} + 1}});
    if (launch_.options.memcheck && !launch_.seen("local_oob", pc)) launch_.findings.add(finding);
    launch_.fail(Fault::illegal_address, launch_.where(pc) + ": ", true, finding);
    state_.splits.clear();
  }

  void call(std::size_t number, const Instruction& i, std::uint32_t pc, Mask m) {
    const CallSite& site = launch_.program.calls[i.target];
    Frame* const caller = state_.splits[number].frame;
    if (site.builtin != Builtin::none) {
      save(number, pc + 1, m);
      call_builtin(state_, i, site, *caller, m, pc);
      if (w_.fallen) {
        const Mask gone = std::exchange(w_.fallen, 0);
        save(number, pc + 1, m & ~gone);
        leave(number, gone, pc);
      }
      return;
    }
    auto function = static_cast<std::uint32_t>(site.function);
    if (site.function < 0) {  // through a register: the lanes that call the same function as the first
      const auto* targets = lanes_at<std::uint64_t>(w_, i.o[0]);
      const auto target = targets[std::countr_zero(m)];
      Mask same = 0;
      for (Mask k = m; k; k &= k - 1) {
        const int l = std::countr_zero(k);
        if (targets[l] == target) same |= 1u << l;
      }
      const auto& numbers = launch_.program.function_by_number;
      const auto found = numbers.find(static_cast<std::uint32_t>((target - function_window) / 16));
      if (target < function_window || found == numbers.end()) {
        launch_.fail(Fault::illegal_instruction, "call through a pointer that is no function in " + launch_.where(pc),
                     true);
        state_.splits.clear();
        return;
      }
      function = found->second;
      if (same != m) {
        state_.part(m & ~same);
        add({.pc = pc, .mask = m & ~same, .frame = caller});
        m = same;
      }
    }
    const FunctionCode& code = launch_.program.functions[function];
    if (caller->depth >= max_depth) return overflow_stack(*caller, pc, m);
    Frame* const callee = push_frame(state_, function, caller);
    if (!callee) return overflow_stack(*caller, pc, m);
    callee->call = i.target;
    callee->return_pc = pc + 1;
    for (std::size_t n = 0; n < std::min(site.arguments.size(), code.parameters.size()); ++n) {
      copy_area(caller->registers, site.arguments[n], callee->registers, code.parameters[n], m);
    }
    Split& s = state_.splits[number];
    s.frame = callee;  // the caller's use passes to the callee's parent link
    s.pc = code.entry;
    s.mask = m;
  }

  void ret(std::size_t number) {
    Split& s = state_.splits[number];
    Frame* const callee = s.frame;
    Frame* const caller = callee->parent;
    const CallSite& site = launch_.program.calls[callee->call];
    const FunctionCode& code = launch_.program.functions[callee->function];
    for (std::size_t n = 0; n < std::min(site.results.size(), code.results.size()); ++n) {
      copy_area(callee->registers, code.results[n], caller->registers, site.results[n], s.mask);
    }
    s.frame = caller;
    s.pc = callee->return_pc;
    ++caller->users;
    drop_frame(state_, callee);
  }

  static void copy_area(const std::byte* from, Area a, std::byte* to, Area b, Mask m) {
    for (; m; m &= m - 1) {
      const auto l = static_cast<std::size_t>(std::countr_zero(m));
      std::memcpy(to + b.offset + l * b.size, from + a.offset + l * a.size, std::min(a.size, b.size));
    }
  }

  void read_clock(const Instruction& i, Mask m) {
    const auto lag = static_cast<std::uint64_t>(i.offset) * w_.block->seat.multiprocessor;
    const std::uint64_t now = (worker_.clock + lag) >> i.target;
    for (; m; m &= m - 1) {
      const auto l = static_cast<std::size_t>(std::countr_zero(m));
      std::memcpy(lanes_at<std::byte>(w_, i.o[0]) + l * i.size, &now, i.size);
    }
  }

  WarpState& state_;
  Warp& w_;
  Worker& worker_;
  LaunchState& launch_;
  const Instruction* code_;
  std::int64_t left_;
  std::uint32_t limit_ = ~0u;
  bool rotate_ = false, others_ = false;
};

}  // namespace

Stop run_warp(WarpState& state, std::uint64_t slice) { return Runner(state, slice).run(); }

void WarpState::part(Mask lanes) {
  if (!warp.descending) return;
  // Lanes that were apart stay so.
  std::map<std::uint64_t, std::uint64_t> renamed;
  for (Mask m = lanes; m; m &= m - 1) {
    std::uint64_t& way = ways[static_cast<std::size_t>(std::countr_zero(m))];
    const auto [at, fresh] = renamed.try_emplace(way, last_way + 1);
    last_way += fresh;
    way = at->second;
  }
}

void WarpState::converge(Mask lanes) {
  if (!warp.descending) return;
  ++last_way;
  for (; lanes; lanes &= lanes - 1) ways[static_cast<std::size_t>(std::countr_zero(lanes))] = last_way;
}

Mask WarpState::together(Mask lanes, Mask all) const {
  if (!warp.descending || !lanes) return lanes;
  Mask same = 0;
  const auto way = ways[static_cast<std::size_t>(std::countr_zero(lanes))];
  for (Mask m = lanes; m; m &= m - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(m));
    if (ways[lane] == way) same |= Mask{1} << lane;
  }
  if (lanes == all) return same;
  // Behind a branch that others did not take, lanes may part at any time.
  Mask half = same;
  while (count_lanes(half) > (count_lanes(same) + 1) / 2) half &= ~(Mask{1} << (31 - std::countl_zero(half)));
  return half;
}

Frame* push_frame(WarpState& state, std::uint32_t function, Frame* parent) {
  const FunctionCode& code = state.warp.worker->launch.program.functions[function];
  const std::uint32_t base = parent ? parent->local_top + local_gap : 0;
  if (base + code.local_bytes > state.warp.worker->launch.program.local_bytes) return nullptr;
  std::unique_ptr<Frame> frame;
  const auto fits = [&](const auto& f) { return f->storage.size() >= code.frame_bytes + 128u; };
  const auto found = std::find_if(state.free_frames.begin(), state.free_frames.end(), fits);
  if (found != state.free_frames.end()) {
    frame = std::move(*found);
    state.free_frames.erase(found);
  } else {
    frame = std::make_unique<Frame>();
    frame->storage.resize(code.frame_bytes + 128u);
  }
  const auto at = reinterpret_cast<std::uintptr_t>(frame->storage.data());
  frame->registers = frame->storage.data() + ((at + 127) / 128 * 128 - at);
  frame->parent = parent;
  frame->function = function;
  frame->depth = parent ? parent->depth + 1 : 0;
  frame->local_top = base + code.local_bytes;
  frame->users = 1;
  frame->unwritten.reset();
  // What no instruction has written yet is anything on a GPU: nothing that one would take for a neutral number.
  if (state.warp.worker->launch.options.order == Order::reversed) {
    std::memset(frame->registers, 0xff, code.frame_bytes);
  } else {
    for (const Slot slot : code.shuffled) std::memset(frame->registers + slot, 0, 4 * lane_count);
  }
  std::memcpy(frame->registers, &base, sizeof base);
  state.frames.push_back(std::move(frame));
  return state.frames.back().get();
}

// One user fewer; the last one frees the frame and with it the use of its parent.
void drop_frame(WarpState& state, Frame* frame) {
  while (frame && --frame->users == 0) {
    Frame* const parent = frame->parent;
    const auto found =
        std::find_if(state.frames.begin(), state.frames.end(), [&](const auto& f) { return f.get() == frame; });
    state.free_frames.push_back(std::move(*found));
    state.frames.erase(found);
    frame = parent;
  }
}

void settle_collectives(WarpState& state) {
  Warp& w = state.warp;
  const auto& code = w.worker->launch.program.code;
  for (std::size_t n = 0; n < state.splits.size(); ++n) {
    Split& s = state.splits[n];
    if (s.state != Split::State::collective) continue;
    const Mask wanted = s.members & w.live;
    const Instruction& i = code[s.pc];
    Mask here = s.mask;
    std::vector<Split*> parts{&s};
    if (i.offset == 0) {  // bar.warp.sync: the lanes may come from different places
      for (auto& other : state.splits) {
        if (&other == &s || other.state != Split::State::collective || other.members != s.members ||
            code[other.pc].offset != 0)
          continue;
        here |= other.mask;
        parts.push_back(&other);
      }
    }
    if ((here & wanted) != wanted) continue;
    for (Split* part : parts) {
      w.bank[frame_bank] = part->frame->registers;
      w.worker->frame = part->frame;
      code[part->pc].run(w, code[part->pc], part->mask);
      part->state = Split::State::ready;
      ++part->pc;
    }
    met(state, i, here);
  }
}

}  // namespace sim
