// Copies of a tile. Where a tile of a Triton program has fewer elements than the program has threads, several threads
// load each element, and one of them stores what becomes of it. If that goes to the same place, the others race with
// it, but what they have loaded decides nothing. So a race between a load and a store of such a kernel waits for the
// end of its block, and is reported if the thread that loaded has stored anything that follows from what it loaded.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "engine/checks/checks.h"
#include "engine/checks/races.h"

namespace sim {
namespace {

using ptx::Operand;
using ptx::Statement;

enum class Use : std::uint8_t { value, store, exchange, unknown };

// What a statement does with what it reads; most make a value of it. Where that steers the thread it may decide
// anything.
Use use_of(const Statement& s) {
  static const std::unordered_map<std::string_view, Use> table{
      {"st", Use::store},      {"red", Use::store},     {"atom", Use::store},      {"cp", Use::store},
      {"shfl", Use::exchange}, {"vote", Use::exchange}, {"match", Use::exchange},  {"redux", Use::exchange},
      {"mma", Use::exchange},  {"wmma", Use::exchange}, {"bra", Use::unknown},     {"brx", Use::unknown},
      {"call", Use::unknown},  {"bar", Use::unknown},   {"barrier", Use::unknown}, {"ret", Use::unknown},
      {"exit", Use::unknown},  {"trap", Use::unknown},  {"mbarrier", Use::unknown}};
  const bool hides = s.opcode.starts_with("st.local") || s.opcode.starts_with("st.param");
  const auto found = table.find(s.opcode.substr(0, s.opcode.find('.')));
  return hides ? Use::unknown : found == table.end() ? Use::value : found->second;
}

template <class F> void each_register(const Operand& o, F f) {
  for (const auto reg : {o.reg, o.second}) {
    if (reg >= 0) f(reg);
  }
  for (const auto& part : o.parts) each_register(part, f);
}
bool has_result(const Statement& s) {
  return !s.operands.empty() && s.operands[0].kind != Operand::Kind::address && use_of(s) != Use::unknown;
}

Consequences follow(const LaunchState& launch, std::uint32_t load) {
  const KernelCode& program = launch.program;
  const auto& statements = launch.module.functions[program.functions[0].number].statements;
  if (program.functions.size() > 1 || !has_result(statements[program.statements[load]])) return {.unknown = true};
  Consequences all;
  std::set<std::int32_t> known;
  const auto learn = [&](const Statement& s) {
    const auto before = known.size();
    if (has_result(s)) each_register(s.operands[0], [&](std::int32_t reg) { known.insert(reg); });
    return known.size() > before;
  };
  const auto depends = [&](const Statement& s) {
    bool found = known.contains(s.guard);
    for (std::size_t n = has_result(s); n < s.operands.size(); ++n)
      each_register(s.operands[n], [&](std::int32_t reg) { found |= known.contains(reg); });
    return found;
  };
  learn(statements[program.statements[load]]);
  for (bool grows = true; grows;) {
    grows = false;
    for (const Statement& s : statements) {
      if (!depends(s)) continue;
      grows |= learn(s);
      const Use use = use_of(s);
      all.unknown |= use == Use::unknown || (use == Use::store && known.contains(s.guard));
      all.of_warp |= use == Use::exchange;
    }
  }
  for (const Instruction& i : program.code) {
    if (i.flow != Flow::memory) continue;
    const Statement& s = statements[program.statements[i.site]];
    if (use_of(s) == Use::store && depends(s)) all.stores.push_back(i.site);
  }
  return all;
}

const Consequences& consequences(LaunchState& launch, std::uint32_t load) {
  const std::lock_guard lock(launch.mutex);
  const auto [at, fresh] = launch.consequences.try_emplace(load);
  if (fresh) at->second = follow(launch, load);
  return at->second;
}

bool counts(LaunchState& launch, const SharedRaces& r, std::size_t warps, const SharedRaces::Doubt& d) {
  const Consequences& all = consequences(launch, d.load);
  return all.unknown || std::ranges::any_of(all.stores, [&](std::uint32_t site) {
           return (r.stored[site * warps + d.warp] & (all.of_warp ? all_lanes : d.lanes)) != 0;
         });
}

}  // namespace

void note_store(const Warp& w, const Instruction& i, const Access& a) {
  SharedRaces& r = *w.block->races;
  const std::size_t warps = w.block->warps.size(), entry = i.site * warps + w.number;
  r.stored.resize(w.worker->launch.program.code.size() * warps);
  if (!r.stored[entry]) r.entries_stored.push_back(entry);
  r.stored[entry] |= a.mask;
}

void end_block(const Block& block) {
  if (!block.races) return;
  LaunchState& launch = block.warps[0]->warp.worker->launch;
  SharedRaces& r = *block.races;
  for (const auto& d : r.doubts) {
    if (launch.faulted || !counts(launch, r, block.warps.size(), d) || launch.seen("race_global", d.site)) continue;
    launch.findings.add(d.finding);
  }
  r.doubts.clear();
  for (const auto entry : r.entries_stored) r.stored[entry] = 0;
  r.entries_stored.clear();
}

}  // namespace sim
