#include "engine/hang.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include <cxxabi.h>

#include "engine/crew.h"
#include "engine/execution.h"

namespace sim {
namespace {

constexpr unsigned rounds = 256;            // of all warps of the block, while one of them is watched
constexpr std::uint64_t slice = 1 << 14;    // instructions of a warp in each of them

std::atomic<bool> ended_from_outside{false};  // a signal handler reaches nothing else
static_assert(std::atomic<bool>::is_always_lock_free);

std::string decimal(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

// As people write it, without the namespaces that make it local to a file.
std::string name_variable(std::string_view mangled) {
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(std::string(mangled).c_str(), nullptr, nullptr, nullptr), &std::free);
  if (!plain) return std::string(mangled);
  std::string name = plain.get();
  for (const char* made : {"_INTERNAL_", "(anonymous namespace)"}) {
    const auto begin = name.find(made), end = name.find("::", begin);
    if (end != name.npos) name.erase(begin, end + 2 - begin);
  }
  return name;
}

// Whether an atomicCAS is about to store, as that of a lock which is taken never does.
bool swaps(const Warp& warp, const Instruction& i, const Access& a) {
  if (!a.atomic || !i.may_spin || !i.o[3] || a.size > 8) return false;
  const auto lane = static_cast<std::size_t>(std::countr_zero(a.mask));
  const std::byte* word = a.space == ptx::Space::shared ? warp.shared + a.address[lane]
                                                        : reinterpret_cast<const std::byte*>(a.address[lane]);
  return std::memcmp(word, lanes_at<std::byte>(warp, i.o[2]) + lane * a.size, a.size) == 0;
}

// The word that a loop looks at: a byte of shared memory, of a variable or of another allocation; none if not known.
Facts awaited(const LaunchState& launch, const Trail::Look& look) {
  if (look.space != ptx::Space::global) return {{"shared_byte", look.address}};
  const auto found = launch.memory.find(look.address);
  if (!found) return {};
  const auto offset = look.address - found->base;
  for (const auto& [name, address] : launch.layout.globals) {
    if (address != found->base) continue;
    Facts facts{{"variable", name_variable(name)}};
    if (offset) facts.emplace_back("byte", offset);
    return facts;
  }
  return {{"array_byte", offset}};
}

bool waits_for_another(const Trail::Look& look) {
  return !look.moves && (look.instruction->may_spin || look.instruction->polls);
}

// Of a loop in which the blocks that are resident wait, while others wait for them to end.
std::optional<Finding> crowded(const LaunchState& launch, std::uint32_t pc, const std::vector<Trail::Look>& looks) {
  const auto& room = launch.residency;
  const auto look = std::ranges::find_if(looks, waits_for_another);
  if (!room.full() || look == looks.end() || look->space != ptx::Space::global) return {};
  Facts facts = awaited(launch, *look);
  facts.insert(facts.end(), {{"blocks", launch.blocks},
                             {"resident", room.most()},
                             {"on_each", room.of_each()},
                             {"multiprocessors", limits::multiprocessors},
                             {"waiting", room.waiting()}});
  return launch.finding("deadlock", "crowded", pc, {launch.at(pc)}, std::move(facts));
}

// What the loop waits for, as far as its accesses to memory tell.
std::pair<const char*, Facts> purpose(const LaunchState& launch, const std::vector<Trail::Look>& looks) {
  if (looks.size() == 1 && looks.front().swaps) return {"swaps", awaited(launch, looks.front())};
  const auto lock = std::ranges::find_if(
      looks, [](const auto& look) { return waits_for_another(look) && look.writes && !look.swaps; });
  if (lock != looks.end()) return {"lock", awaited(launch, *lock)};
  const auto flag = std::ranges::find_if(looks, waits_for_another);
  if (flag != looks.end()) return {"flag", awaited(launch, *flag)};
  if (looks.empty()) return {"alone", {}};
  const bool still = std::ranges::none_of(looks, [](const auto& look) { return look.moves || look.writes; });
  return still ? std::pair{"still", awaited(launch, looks.front())} : std::pair{"loop", Facts{}};
}

}  // namespace

void Trail::jumped(const Warp& warp, std::uint32_t from, std::uint32_t to, std::uint32_t depth) {
  if (&warp != warp_ || to > from) return;
  auto& loop = loops_[{to, from}];
  loop = {to, from, depth, loop.rounds + 1};
}

void Trail::accessed(const Warp& warp, const Instruction& i, const Access& a) {
  if (&warp != warp_ || a.space == ptx::Space::local) return;
  const Address address = a.address[std::countr_zero(a.mask)];
  auto& look = looks_[i.site];
  look.moves |= look.instruction != nullptr && look.address != address;
  look.instruction = &i;
  look.space = a.space;
  look.address = address;
  look.writes |= (a.write || a.atomic) && !i.polls;
  look.swaps |= swaps(warp, i, a);
}

const Trail::Loop* Trail::loop() const {
  const Loop* chosen = nullptr;
  for (const auto& [_, loop] : loops_) {
    if (loop.rounds < 2) continue;
    const auto outer = [&] {
      return loop.depth != chosen->depth ? loop.depth < chosen->depth
                                         : loop.last - loop.first > chosen->last - chosen->first;
    };
    if (!chosen || outer()) chosen = &loop;
  }
  return chosen;
}

std::vector<Trail::Look> Trail::looks(const Loop& loop) const {
  std::vector<Look> found;
  for (const auto& [site, look] : looks_) {
    if (site >= loop.first && site <= loop.last) found.push_back(look);
  }
  return found;
}

void end_launches() noexcept { ended_from_outside = true; }

bool over_budget(LaunchState& launch, WarpState& state, std::uint64_t total) {
  if (ended_from_outside.load(std::memory_order_relaxed)) {
    launch.fail(Fault::launch_timeout, "ended from outside, " + launch.where(0), true);
    return true;
  }
  const auto& o = launch.options;
  std::string used;
  if (o.progress_budget &&
      total - std::min(total, launch.progress.load(std::memory_order_relaxed)) > o.progress_budget) {
    used = decimal(o.progress_budget) + " warp instructions since a warp last ended or passed a __syncthreads()";
  } else if (total > o.instruction_budget) {
    used = decimal(o.instruction_budget) + " warp instructions";
  } else if (o.total_budget && launch.spent_before + total > o.total_budget) {
    used = decimal(o.total_budget) + " warp instructions in all launches of this call";
  } else {
    return false;
  }
  if (launch.out_of_budget.exchange(true)) {  // another worker finds out why
    while (!launch.stop) rest();
    return true;
  }
  Block& block = *state.warp.block;
  WarpState* watched = &state;
  for (auto& w : block.warps) {
    if (!watched->ready()) watched = w.get();
  }
  Trail trail(watched->warp);
  state.warp.worker->trail = &trail;
  watched->warp.watched = true;
  for (unsigned n = 0; n < rounds && !launch.stop; ++n) {
    for (auto& w : block.warps) {
      if (w->ready()) run_warp(*w, slice);
    }
  }
  state.warp.worker->trail = nullptr;
  const auto* loop = trail.loop();
  const auto pc = loop ? loop->last : watched->splits.empty() ? 0 : watched->splits[0].pc;
  const auto looks = loop ? trail.looks(*loop) : std::vector<Trail::Look>{};
  if (const auto finding = crowded(launch, pc, looks)) {
    launch.findings.add(*finding);
    launch.fail(Fault::launch_timeout, "deadlock in " + launch.where(pc) + ": ", true, finding);
    return true;
  }
  // Without the numbers of this launch, so that other sizes give the same finding.
  auto [reason, facts] = loop ? purpose(launch, looks) : std::pair{"no_loop", Facts{}};
  launch.report("budget", reason, pc, {launch.at(pc)}, std::move(facts));
  const auto warp = loop ? " by warp " + std::to_string(watched->warp.number) + " of " + name_block(block) : "";
  launch.fail(Fault::launch_timeout, "the kernel does not end: " + used + ", at last in " + launch.where(pc) + warp,
              true);
  return true;
}

}  // namespace sim
