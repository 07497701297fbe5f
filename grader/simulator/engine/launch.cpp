#include "engine/launch.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ranges>
#include <tuple>
#include <utility>

#include "engine/checks/checks.h"
#include "engine/checks/coverage.h"
#include "engine/checks/races.h"

namespace sim {
namespace {

constexpr std::uint64_t long_slice = 1 << 19;   // instructions of a block
constexpr std::uint64_t short_slice =
    1 << 12;  // of one that seems to wait for others: the less it runs in vain, the better
constexpr unsigned patience = 64;                   // slices of a block that does not look as if it waited
constexpr std::size_t haste = 16;        // slices of waiting before a worker leaves its processor to others
constexpr std::size_t most_rests = 2048;  // one after the other
constexpr std::uint64_t most_at_once =
    16;          // blocks that a worker takes: neighbours write to the same lines of the cache
constexpr std::uint32_t most_poisoned = 4096;  // bytes of the local memory of a thread, which seldom has more
constexpr std::size_t most_paused = 64;  // blocks of a worker that pause at a time

std::byte* align_up(std::vector<std::byte>& storage, std::size_t bytes) {
  if (storage.size() < bytes + 128) storage.resize(bytes + 128);
  const auto at = reinterpret_cast<std::uintptr_t>(storage.data());
  return storage.data() + ((at + 127) / 128 * 128 - at);
}

void broadcast(std::byte* slot, std::uint32_t value) {
  for (unsigned l = 0; l < lane_count; ++l) std::memcpy(slot + 4 * l, &value, 4);
}

// "Special Registers": %smid "is not guaranteed to be contiguous", and %nsmid may be larger than the number of
// multiprocessors. So in the reversed order every second identifier belongs to none.
std::uint32_t identifiers_of_each(const Options& options) { return options.order == Order::reversed ? 2 : 1; }

void fill_launch_bank(LaunchState& s, Address workspace) {
  std::byte* bank = s.bank_start = align_up(s.bank, s.program.launch_bank_bytes);
  const auto put = [&](LaunchSpecial which, std::uint32_t value) {
    broadcast(bank + static_cast<std::uint32_t>(which) * special_bytes, value);
  };
  const auto each = [&](LaunchSpecial which, auto f) {
    for (std::uint32_t l = 0; l < lane_count; ++l) {
      const std::uint32_t value = f(l);
      std::memcpy(bank + static_cast<std::uint32_t>(which) * special_bytes + 4 * l, &value, 4);
    }
  };
  using L = LaunchSpecial;
  each(L::lane, [](auto l) { return l; });
  each(L::lanemask_eq, [](auto l) { return 1u << l; });
  each(L::lanemask_lt, [](auto l) { return (1u << l) - 1; });
  each(L::lanemask_le, [](auto l) { return (1u << l) | ((1u << l) - 1); });
  each(L::lanemask_gt, [](auto l) { return ~((1u << l) | ((1u << l) - 1)); });
  each(L::lanemask_ge, [](auto l) { return ~((1u << l) - 1); });
  const auto& [kernel, grid, block, dynamic, registers, parameters, stream, cooperative, early] = s.launch;
  put(L::ntid_x, block.x);
  put(L::ntid_y, block.y);
  put(L::ntid_z, block.z);
  put(L::nctaid_x, grid.x);
  put(L::nctaid_y, grid.y);
  put(L::nctaid_z, grid.z);
  put(L::warps, limits::warps_per_sm);
  put(L::multiprocessors, identifiers_of_each(s.options) * limits::multiprocessors);
  put(L::zero, 0);
  put(L::dynamic_shared, dynamic);
  put(L::total_shared, s.program.static_shared + dynamic);
  put(L::reserved_shared, s.shared_size - s.program.reserved_shared);
  put(L::workspace_high, static_cast<std::uint32_t>(workspace >> 32));
  put(L::workspace_low, static_cast<std::uint32_t>(workspace));
  for (const auto& p : s.program.parameter_slots) {
    for (unsigned l = 0; l < lane_count; ++l)
      std::memcpy(bank + p.slot_offset + l * p.bytes, parameters.data() + p.offset, p.bytes);
  }
}

void fill_specials(Warp& w, std::byte* bank, const LaunchState& s) {
  const Dim3 block = s.launch.block;
  auto* x = reinterpret_cast<std::uint32_t*>(bank);
  for (std::uint32_t l = 0; l < lane_count; ++l) {
    const std::uint32_t t = w.number * lane_count + l;
    x[l] = t % block.x;
    x[32 + l] = t / block.x % block.y;
    x[64 + l] = t / block.x / block.y;
  }
}

// A multiprocessor numbers its warps in whatever order it finds room for them.
std::uint32_t warp_of_multiprocessor(const Block& block, std::uint32_t warp, const Options& options) {
  const auto first = 7 * block.seat.multiprocessor + 3 + 5 * static_cast<std::uint32_t>(options.order) +
                     static_cast<std::uint32_t>(options.seed);
  const auto before = block.seat.number * static_cast<std::uint32_t>(block.warps.size());
  return (first + before + warp) % limits::warps_per_sm;
}

void collect_counts(const LaunchState& s, const std::vector<std::unique_ptr<Worker>>& workers,
                    std::vector<LineCount>& into) {
  std::map<std::pair<std::string_view, unsigned>, LineCount> lines;
  for (const auto& w : workers) {
    std::int64_t starts = 0, lanes = 0;
    for (std::size_t pc = 0; pc < s.program.code.size(); ++pc) {
      starts += w->counts.starts[pc];
      lanes += w->counts.lanes[pc];
      if (s.program.code[pc].hidden || starts == 0) continue;
      const auto& place = s.place(static_cast<std::uint32_t>(pc));
      LineCount& c = lines[{place.file, place.line}];
      const SiteCount& m = w->counts.memory[pc];
      c.instructions += static_cast<std::uint64_t>(starts);
      c.lanes += static_cast<std::uint64_t>(lanes - w->counts.skipped[pc]);
      c.global_requests += m.global_requests;
      c.global_sectors += m.global_sectors;
      c.minimal_sectors += m.minimal_sectors;
      c.global_bytes += m.global_bytes;
      c.shared_requests += m.shared_requests;
      c.shared_wavefronts += m.shared_wavefronts;
      c.minimal_wavefronts += m.minimal_wavefronts;
      c.barriers += m.barriers;
      c.undefined_lanes += m.undefined_lanes;
      c.atomics += m.atomics;
    }
  }
  for (auto& [at, c] : lines) {
    c.kernel = s.program.kernel;
    c.file = at.first;
    c.line = at.second;
    into.push_back(std::move(c));
  }
}

std::string name(const ptx::Place& p) {
  return std::string(p.file.substr(p.file.rfind('/') + 1)) + ":" + std::to_string(p.line);
}

// A function without its parameters, those of a template and what it returns.
std::string plain_name(std::string_view mangled) {
  std::string text(mangled);
  int failed = 0;
  const std::unique_ptr<char, decltype(&std::free)> words(abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &failed),
                                                          &std::free);
  if (failed) return text;
  std::string plain;
  int depth = 0;
  for (const char c : std::string_view(words.get())) {
    if (c == '(' && depth == 0) break;
    depth -= c == '>';
    if (depth == 0 && c != '>') plain += c;
    depth += c == '<';
    if (depth == 1 && c == '<') plain.pop_back();
  }
  return plain.substr(plain.rfind(' ') + 1);
}

Dim3 thread_index(const Dim3& block, std::uint32_t warp, std::uint32_t lane) {
  const std::uint32_t t = warp * lane_count + lane;
  return {t % block.x, t / block.x % block.y, t / block.x / block.y};
}

}  // namespace

void LaunchState::fail(Fault fault, const std::string& message, bool stopping, std::optional<Finding> finding) {
  const std::lock_guard lock(mutex);
  if (result.fault == Fault::none) {
    result.fault = fault;
    result.message = message;
    result.finding = std::move(finding);
  }
  faulted = true;
  if (stopping) stop = true;
}

void LaunchState::lacks(const Refusal& unknown) {
  {
    const std::lock_guard lock(mutex);
    if (!result.gap) result.gap = unknown.gap;
  }
  fail(Fault::unsupported, unknown.what(), true);
}

std::pair<std::uint64_t, std::uint64_t> LaunchState::take_blocks(std::uint64_t most) {
  const auto left = blocks - std::min(blocks, next_block.load(std::memory_order_relaxed));
  const auto wanted = std::clamp<std::uint64_t>(left / (8 * std::max(1u, options.threads)), 1, most);
  const auto first = next_block.fetch_add(wanted);
  return {std::min(first, blocks), std::min(first + wanted, blocks)};
}

std::string LaunchState::where(std::uint32_t pc) const {
  const auto& p = place(pc);
  return std::string(program.kernel) + (p.line ? ", " + name(p) : "");
}

bool LaunchState::seen(const char* kind, std::uint32_t pc, Severity severity) const {
  const auto& p = place(pc);
  return findings.has(kind, program.kernel, p.file, p.line, severity);
}

std::vector<const ptx::Place*> LaunchState::chain(std::uint32_t pc) const {
  std::vector<const ptx::Place*> places{&place(pc)};
  while (places.back()->caller) places.push_back(&module.places[places.back()->caller]);
  return places;
}

Place LaunchState::at(std::uint32_t pc) const {
  Place at{std::string(place(pc).file), place(pc).line};
  for (const auto* call : chain(pc) | std::views::drop(1)) at.calls.push_back({std::string(call->file), call->line});
  return at;
}
Place LaunchState::at(std::uint32_t pc, const Block& block) const {
  Place here = at(pc);
  here.block = block.index;
  return here;
}
Place LaunchState::at(std::uint32_t pc, const Block& block, std::uint32_t warp, std::uint32_t lane, const char* does,
                      std::uint32_t bytes) const {
  Place here = at(pc, block);
  here.thread = thread_index(launch.block, warp, lane);
  here.does = does;
  here.bytes = bytes;
  return here;
}

Facts LaunchState::overlap(std::uint32_t pc, bool writes, std::uint32_t other, bool other_writes) const {
  // What one call has left to read the next one writes over; else the code is in the order of the calls.
  const bool first = writes == other_writes ? pc < other : other_writes;
  const auto chains = std::array{chain(first ? pc : other), chain(first ? other : pc)};
  std::array at{chains[0].rbegin(), chains[1].rbegin()};
  const auto is_call = [&](int n) { return at[n] != chains[n].rend() && std::next(at[n]) != chains[n].rend(); };
  while (is_call(0) && is_call(1)) {
    const ptx::Place &a = **at[0], &b = **at[1];
    if (a.file != b.file || a.line != b.line || a.column != b.column) {
      const auto function = (*std::next(at[0]))->function;
      if (function.empty() || function != (*std::next(at[1]))->function) return {};
      const bool in_a_loop = a.file == b.file && b.line < a.line;  // around both
      return {
          {in_a_loop ? "begins_again" : "second", plain_name(function)}, {"begins_at", name(b)}, {"left_at", name(a)}};
    }
    ++at[0];
    ++at[1];
  }
  return {};
}

Finding LaunchState::finding(const char* kind, const char* reason, std::uint32_t pc, std::vector<Place> places,
                             Facts facts, Severity severity) const {
  const auto& p = place(pc);
  return {
      kind,    reason, std::string(program.kernel), std::string(p.file), p.line, std::move(places), std::move(facts),
      severity};
}

std::string name_block(const Block& b) {
  return "block (" + std::to_string(b.index.x) + "," + std::to_string(b.index.y) + "," + std::to_string(b.index.z) +
         ")";
}
std::string name_thread(const LaunchState& s, const Block& b, std::uint32_t warp, std::uint32_t lane) {
  const Dim3 t = thread_index(s.launch.block, warp, lane);
  return "thread (" + std::to_string(t.x) + "," + std::to_string(t.y) + "," + std::to_string(t.z) + ") of " +
         name_block(b);
}

Worker::Worker(LaunchState& l) : launch(l), regions(l.program.code.size()) {
  clock = l.clock_start;
  counting = l.options.counters;
  if (l.options.coverage) observe(*this);
  if (!counting) return;
  const auto n = l.program.code.size();
  counts.starts.resize(n + 1);
  counts.lanes.resize(n + 1);
  counts.skipped.resize(n + 1);
  counts.memory.resize(n);
}

std::unique_ptr<Block> Worker::start(std::uint64_t number) {
  std::unique_ptr<Block> block;
  if (idle.empty()) {
    block = std::make_unique<Block>();
    const auto count = static_cast<std::uint32_t>((launch.threads_per_block + 31) / 32);
    for (std::uint32_t n = 0; n < count; ++n) {
      auto& w = *block->warps.emplace_back(std::make_unique<WarpState>());
      w.warp.number = n;
      w.warp.worker = this;
      w.warp.block = block.get();
      w.warp.bank[warp_bank] =
          align_up(w.special_storage, static_cast<std::uint32_t>(WarpSpecial::count) * special_bytes);
      fill_specials(w.warp, w.warp.bank[warp_bank], launch);
      const std::uint32_t local_bytes = launch.program.local_bytes;
      w.warp.local_stride = local_bytes ? (local_bytes + 15) / 16 * 16 + local_margin : 0;
      w.local_storage = std::make_unique_for_overwrite<std::byte[]>(std::size_t{w.warp.local_stride} * lane_count);
      w.warp.local = w.local_storage.get();
      w.warp.wrote_margin = local_bytes != 0;  // nothing has cleared it yet
      block->order.push_back(static_cast<std::uint32_t>(ordered(n, count, launch.options)));
    }
    block->shared = align_up(block->shared_storage, launch.shared_size + shared_granularity);
  } else {
    block = std::move(idle.back());
    idle.pop_back();
  }
  const Dim3 grid = launch.launch.grid;
  block->number = number;
  block->index = {static_cast<std::uint32_t>(number % grid.x), static_cast<std::uint32_t>(number / grid.x % grid.y),
                  static_cast<std::uint32_t>(number / grid.x / grid.y)};
  block->seat = launch.residency.take(launch.options);
  block->threads = block->live_threads = static_cast<std::uint32_t>(launch.threads_per_block);
  block->copied_unwritten.clear();
  block->of_heap = block->most_of_heap = 0;
  block->barriers = {};
  block->barriers_in_use = 0;
  block->looked = 0;
  block->looking = false;
  block->looks.clear();
  block->offers = block->passings = 0;
  block->interruptions.fill(0);
  block->stepped_back.fill(0);
  block->interrupted_at.fill(0);
  std::memset(block->shared, 0xff, launch.shared_size);
  std::memset(block->shared + launch.shared_size, 0, shared_granularity);
  const auto& o = launch.options;
  const std::uint32_t poisoned = std::min(launch.program.local_bytes, most_poisoned);
  for (auto& w : block->warps) {
    Warp& warp = w->warp;
    const std::uint32_t first = warp.number * lane_count;
    const std::uint32_t count = std::min(lane_count, block->threads - first);
    warp.live = warp.started = count == lane_count ? all_lanes : (1u << count) - 1;
    warp.fallen = 0;
    if (std::exchange(warp.wrote_margin, false)) {
      for (std::uint32_t l = 1; l <= lane_count; ++l)
        std::memset(warp.local + std::size_t{l} * warp.local_stride - local_margin, 0, local_margin);
    }
    for (std::uint32_t l = 0; poisoned && l < lane_count; ++l)
      std::memset(warp.local + std::size_t{l} * warp.local_stride, 0xff, poisoned);
    warp.bank[launch_bank] = launch.bank_start;
    warp.bank[constant_bank] = launch.constants;
    warp.regions = regions.data();
    warp.compared = compared.data();
    warp.shared = block->shared;
    warp.shared_size = launch.shared_size;
    warp.parameters = launch.launch.parameters.data();
    warp.lists = launch.program.lists.data();
    warp.parameter_size = static_cast<std::uint32_t>(launch.launch.parameters.size());
    warp.watched = o.initcheck || o.racecheck || o.counters || launch.last_stores;
    warp.descending = o.order == Order::reversed;
    const auto put = [&](WarpSpecial s, std::uint32_t v) {
      broadcast(warp.bank[warp_bank] + static_cast<std::uint32_t>(s) * special_bytes, v);
    };
    put(WarpSpecial::ctaid_x, block->index.x);
    put(WarpSpecial::ctaid_y, block->index.y);
    put(WarpSpecial::ctaid_z, block->index.z);
    const std::uint32_t step = identifiers_of_each(o);
    put(WarpSpecial::multiprocessor, step * block->seat.multiprocessor + step - 1);
    put(WarpSpecial::warp, warp_of_multiprocessor(*block, warp.number, o));
    for (auto& f : w->frames) w->free_frames.push_back(std::move(f));
    w->frames.clear();
    w->splits.clear();
    w->converge(all_lanes);
    Frame* const frame = push_frame(*w, 0, nullptr);
    Split split;
    split.pc = launch.program.functions[0].entry;
    split.mask = warp.live;
    split.frame = frame;
    w->splits.push_back(split);
  }
  begin_block(*block, *this);
  return block;
}

// No warp has ended or passed a barrier for so long that blocks may well wait for each other.
bool Worker::stalled() const {
  const auto budget = launch.options.progress_budget;
  const auto total = launch.executed.load(std::memory_order_relaxed) + unreported;
  return budget && total - std::min(total, launch.progress.load(std::memory_order_relaxed)) > budget / 4;
}

void Worker::run() {
  // Blocks that wait for others, in the order in which they started, walked to and fro. Where each waits for its
  // neighbour, one of the two ways ends them all, while in a queue each round would end one.
  std::vector<std::unique_ptr<Block>> waiting;
  std::size_t at = 0;     // where the walk is
  std::size_t ended = 0;  // where the last one that ended was
  bool back = true;
  const bool alone = launch.options.threads == 1;
  std::uint64_t turn = 0;
  // Whoever waits for blocks of smaller numbers, as CUB's scans do, must not keep those from starting: of more blocks
  // than can be resident, the first ones come first in any order.
  const std::uint64_t most_resident = launch.residency.most();
  const auto in_order = [&](std::uint64_t n) {
    const std::uint64_t first = n / most_resident * most_resident;
    return first + ordered(n - first, std::min(most_resident, launch.blocks - first), launch.options);
  };
  // A block that runs until it waits finds all that others publish for it complete. In one of the orders it pauses when
  // it has published something for the first time, so that others meet what it knows by then. Later ones pause just
  // before that by pairs, so that others meet nothing of them; the first ones do not, so that one can add up many.
  const bool pauses = launch.options.order == Order::reversed;
  std::uint64_t started = 0;
  bool some_paused = false;
  std::size_t waited = 0;  // slices, one after the other
  std::uint64_t next = 0, end = 0;  // of the blocks that are this worker's to start
  while (!launch.stop) {
    std::unique_ptr<Block> block;
    // Meanwhile another worker may have freed one that waits, most often the first or the last, or a neighbour of the
    // one that has ended here last.
    const auto kind = alone || waiting.empty() ? 0 : ++turn % 6;
    const bool enough_paused = some_paused && waiting.size() >= most_paused && waited <= 2 * most_paused;
    if (kind == 0 && !enough_paused) {
      // One that keeps blocks waiting takes no more than it can start: others may wait for those that it would hold.
      if (next == end) std::tie(next, end) = launch.take_blocks(waiting.empty() ? most_at_once : 1);
      if (next < end && launch.residency.admits(next)) block = start(in_order(next++));
    }
    const bool fresh = block != nullptr;
    auto chosen = waiting.size();
    if (fresh) {
      waiting.push_back(std::move(block));
    } else {
      if (waiting.empty() && next == end) return;
      if (waiting.empty()) {  // others hold all the room
        rest();
        continue;
      }
      if (at == 0) back = false;
      if (at >= waiting.size()) {
        at = waiting.size();
        back = true;
      }
      const auto last = waiting.size() - 1;
      chosen = kind == 1   ? 0
               : kind == 2 ? last
               : kind == 3 ? std::min(ended, last)
               : kind == 4 ? std::min(ended - (ended > 0), last)
               : back      ? --at
                           : at++;
    }
    Stop stop;
    const bool early = started >= most_paused / 2 && started / 2 % 2 == 0;
    to_pause = !pauses || !fresh || waiting.size() > most_paused ? Pause::never : early ? Pause::before : Pause::after;
    at_draw = started % 2 != 0;
    // Where blocks wait for each other or share a queue, those that tell others something are interrupted behind it.
    interrupts = pauses && launch.blocks > 1 && (spins != 0 || launch.program.draws) && waiting.size() <= most_paused;
    started += fresh;
    const bool would_pause = to_pause != Pause::never;
    bool has_paused = false;
    const auto before = spins;
    unsigned slices = 0;
    const bool likely_waits = stalled() || waiting.size() > most_paused;
    const auto slice = fresh && !likely_waits ? long_slice : short_slice;
    do {
      stop = run_block(*waiting[chosen], *this, slice);
      has_paused = std::exchange(paused, false);
    } while (stop == Stop::slice && !has_paused && spins == before && ++slices < patience && !stalled() &&
             !launch.stop);
    if (spins != before) launch.late.settle_all();  // what somebody waits for comes in the end
    if (has_paused && would_pause && to_pause == Pause::never) {
      some_paused = true;
      at = waiting.size();  // the last one goes on first
    } else if (has_paused && waiting.size() > 1 && chosen == (back ? 0 : waiting.size() - 1)) {
      at = back ? 1 : chosen;  // the others go on first
      back = !back;
    }
    if (stop == Stop::waiting) report_deadlock(*waiting[chosen], *this);
    waited = stop == Stop::slice && spins != before ? waited + 1 : 0;
    // What it waits for may be another worker's, which needs a processor; and waiting takes instructions of the budget.
    // It has to have looked at all its blocks, or a block that could go on is not reached for seconds. What nothing
    // ends is to be found in seconds, too, so it rests for some tenths of one only.
    const std::size_t walk = std::max(haste, waiting.size());
    if (waited && waited % walk == 0 && waited <= most_rests * walk && launch.options.threads > 1) rest();
    if (stop == Stop::slice) continue;
    launch.late.settle_of_lanes(*waiting[chosen]);
    end_block(*waiting[chosen]);
    launch.residency.leave(waiting[chosen]->seat, waiting[chosen]->most_of_heap - waiting[chosen]->of_heap);
    idle.push_back(std::move(waiting[chosen]));
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(chosen));
    if (at > chosen) --at;
    ended = chosen;
  }
}

Ran run_launch(LaunchState& s, Crew& crew, std::vector<LineCount>& counts, Coverages& coverages) {
  const auto began = std::chrono::steady_clock::now();
  Address workspace = 0;
  if (s.launch.cooperative) {
    workspace = s.memory.allocate(64, Space::device);
    if (workspace) std::memset(reinterpret_cast<void*>(workspace), 0, 64);
    s.memory.mark(workspace, 64, true);
  }
  fill_launch_bank(s, workspace);
  std::vector<std::byte> constants;
  s.constants = align_up(constants, s.program.constants.size());
  std::memcpy(s.constants, s.program.constants.data(), s.program.constants.size());
  const auto threads = std::min<std::uint64_t>(std::max(1u, s.options.threads), s.blocks);
  std::vector<std::unique_ptr<Worker>> workers;
  workers.reserve(threads);
  for (std::uint64_t n = 0; n < threads; ++n) workers.push_back(std::make_unique<Worker>(s));
  crew.run(threads, [&](std::size_t n) { workers[n]->run(); });
  for (const auto& w : workers) s.executed += w->unreported;
  s.late.settle_all();
  settle_unwritten(s);
  if (s.options.counters) collect_counts(s, workers, counts);
  if (s.options.coverage) collect_coverage(s, workers, coverages);
  if (workspace) s.memory.release(workspace);
  s.result.nanoseconds =
      static_cast<std::uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - began).count());
  return s.result;
}

}  // namespace sim
