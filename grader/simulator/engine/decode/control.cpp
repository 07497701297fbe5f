// Statements that steer threads: branches, calls, barriers, fences, and what the lanes of a warp do together.
#include <algorithm>

#include "engine/decode/decoder.h"
#include "engine/hooks.h"

namespace sim {

std::uint32_t Decoder::label(const Operand& o) const {
  const auto* found = in_scope(function->labels, o);
  if (!found) refuse("the label of");
  return *found;
}

void Decoder::branch(const Words& words) {
  if (words[0] == "brx") {
    const auto found = function->branch_targets.find(operand(1).name);
    if (found == function->branch_targets.end()) refuse("the table of");
    std::vector<std::uint32_t> targets;
    for (const auto& target : found->second) targets.push_back(label(target));
    auto& i = emit(nullptr, {source(operand(0), word32)});
    i.flow = Flow::table;
    table_fixups.emplace_back(program.code.size() - 1, std::move(targets));
    return;
  }
  emit(nullptr, {}).flow = Flow::branch;
  fixups.push_back({program.code.size() - 1, label(operand(0))});
}

void Decoder::leave(const Words& words) {
  emit(nullptr, {}).flow = words[0] == "exit" || is_kernel ? Flow::exit : Flow::ret;
}

void Decoder::trap(const Words&) { emit(nullptr, {}).flow = Flow::trap; }

void Decoder::sleep(const Words&) { emit(handler("nothing"), {}).flow = Flow::yield; }

void Decoder::nothing(const Words&) { emit(handler("nothing"), {}); }

void Decoder::depend(const Words& words) {
  program.waits_for_launch_ahead |= has(words, "wait");
  nothing(words);
}

// A fence of a proxy, or of what initialises an mbarrier, orders no accesses of the generic proxy.
void Decoder::fence_(const Words& words) {
  if (has(words, "proxy") || has(words, "mbarrier_init")) return nothing(words);
  auto& i = emit(fence, {});
  i.of_block = has(words, "cta") || has(words, "cluster");
  i.sequential = words[0] == "membar" || has(words, "sc");
  program.fences = true;
  program.fences_between_blocks |= !i.of_block;
}

Area Decoder::area_of(const Operand& o) const {
  if (const Area* area = in_scope(areas, o)) return *area;
  if (const auto found = formal.find(o.name); found != formal.end() && !is_kernel) return found->second;
  refuse("the argument of");
}

void Decoder::call(const Words&) {
  static const std::unordered_map<std::string_view, Builtin> builtins{{"vprintf", Builtin::vprintf},
                                                                      {"__assertfail", Builtin::assertfail},
                                                                      {"malloc", Builtin::malloc},
                                                                      {"free", Builtin::free}};
  std::size_t n = 0;
  CallSite site;
  if (operand(0).kind == Operand::Kind::vector) {
    for (const auto& o : operand(n++).parts) site.results.push_back(area_of(o));
  }
  const Operand& callee = operand(n++);
  if (n < statement->operands.size() && operand(n).kind == Operand::Kind::vector) {
    for (const auto& o : operand(n).parts) site.arguments.push_back(area_of(o));
  }
  Slot through = 0;
  if (callee.kind == Operand::Kind::reg) {
    through = source(callee, word64);
    for (std::uint32_t f = 0; f < module.functions.size(); ++f) {
      if (!module.functions[f].entry && module.functions[f].defined) want(f);
    }
  } else if (const auto builtin = builtins.find(callee.name); builtin != builtins.end()) {
    site.builtin = builtin->second;
  } else {
    const auto found = module.by_name.find(callee.name);
    if (found == module.by_name.end() || !module.functions[found->second].defined)
      refuse("the function " + std::string(callee.name) + " in");
    // nvcc defines what launches kernels in each file, by calls of the driver.
    if (callee.name.starts_with("__cudaCDP2")) refuse("the function " + std::string(callee.name) + " in");
    site.function = static_cast<std::int32_t>(want(found->second));
  }
  auto& i = emit(nullptr, {through});
  i.flow = Flow::call;
  i.target = static_cast<std::uint32_t>(program.calls.size());
  program.calls.push_back(std::move(site));
}

std::uint32_t Decoder::want(std::uint32_t number) {
  const auto [at, fresh] =
      program.function_by_number.try_emplace(number, static_cast<std::uint32_t>(program.functions.size()));
  if (fresh) {
    program.functions.push_back(
        {.number = number, .name = module.functions[number].name, .parameters = {}, .results = {}});
    pending.push_back(number);
  }
  return at->second;
}

// bar.sync, bar.red, bar.arrive. o: result, barrier, count, predicate. target: 1 counted, 2 aligned, 4 negated, and the
// operation from bit 4 on: 1 popc, 2 and, 3 or.
void Decoder::barrier(const Words& words) {
  if (has(words, "warp")) {
    auto& i = emit(handler("bar.warp.sync"), {source(operand(0), word32)});
    i.flow = Flow::collective;
    i.offset = 0;
    return;
  }
  const bool aligned = words[0] == "bar" || has(words, "aligned");
  std::uint32_t how = aligned ? 2 : 0;
  std::size_t n = 0;
  std::vector<Slot> slots(4);
  if (has(words, "red")) {
    how |= has(words, "popc") ? 1 << 4 : has(words, "and") ? 2 << 4 : 3 << 4;
    slots[0] = destination(operand(n++), has(words, "popc") ? word32 : predicate_type);
  }
  slots[1] = source(operand(n++), word32);
  const std::size_t left = statement->operands.size() - n - (how >> 4 ? 1 : 0);
  if (left) {
    slots[2] = source(operand(n++), word32);
    how |= 1;
  }
  if (how >> 4) slots[3] = source(operand(n), predicate_type);
  auto& i = emit(handler("nothing"), slots);
  i.flow = has(words, "arrive") ? Flow::arrive : Flow::barrier;
  i.target = how;
}

void Decoder::shuffle(const Words& words) {
  const std::int32_t second = operand(0).second;
  std::vector<Slot> slots{destination(operand(0), word32), second == -1 ? 0 : predicate_at(second)};
  for (std::size_t n = 1; n < 5; ++n) slots.push_back(source(operand(n), word32));
  if (slots[2] >> bank_shift == frame_bank) shuffled.insert(slots[2]);
  auto& i = emit(handler(join(words)), slots);
  i.flow = Flow::collective;
  i.offset = 5;
  i.target = second != -1;
}

void Decoder::vote(const Words& words) {
  const bool ballot = has(words, "ballot");
  Words ordered = words;  // CUB writes vote.ballot.sync, which ptxas takes for vote.sync.ballot
  std::stable_partition(ordered.begin() + 1, ordered.end(), [](std::string_view word) { return word == "sync"; });
  auto& i = emit(handler(join(ordered)), {destination(operand(0), ballot ? word32 : predicate_type),
                                          source(operand(1), predicate_type), source(operand(2), word32)});
  i.flow = Flow::collective;
  i.offset = 2;
}

void Decoder::match(const Words& words) {
  const std::int32_t second = operand(0).second;
  auto& i = emit(handler(join(words)), {destination(operand(0), word32), second == -1 ? 0 : predicate_at(second),
                                        source(operand(1), type_of(words)), source(operand(2), word32)});
  i.flow = Flow::collective;
  i.offset = 3;
  i.target = second != -1;
}

void Decoder::reduce(const Words& words) {
  auto& i = emit(handler(join(words)),
                 {destination(operand(0), word32), source(operand(1), word32), source(operand(2), word32)});
  i.flow = Flow::collective;
  i.offset = 2;
}

void Decoder::active_mask(const Words& words) {
  emit(handler(join(words)), {destination(operand(0), word32)}).flow = Flow::active;
}

}  // namespace sim
