// Statements on what goes on by itself: asynchronous copies into shared memory, and mbarriers.
#include "engine/decode/decoder.h"
#include "engine/hooks.h"

namespace sim {

// cp.async: the copies, their groups, and the arrivals that wait for them.
void Decoder::copy_async(const Words& words) {
  if (words.size() < 3 || words[1] != "async") refuse("the instruction");
  if (words[2] == "mbarrier") return phase_barrier(words);
  if (words[2] == "commit_group") {
    emit(commit_copies, {});
    return;
  }
  if (words[2] == "wait_group" || words[2] == "wait_all") {
    emit(await_copies, {}).offset = words[2] == "wait_all" ? -1 : static_cast<std::int64_t>(operand(0).bits);
    return;
  }
  if (words[2] != "ca" && words[2] != "cg") refuse("the instruction");
  const auto size = operand(2).bits;
  const Address to = address(operand(0)), from = address(operand(1));
  if (from.narrow || from.offset != static_cast<std::int32_t>(from.offset)) refuse("the address of");
  const std::size_t given =
      statement->operands.size() - (has(words, "L2::cache_hint") ? 1 : 0);  // the policy comes last
  Slot bytes = constant(size, 4);
  if (given > 3 && operand(3).kind == Operand::Kind::reg && width(operand(3).reg) == 0) {  // ignore-src
    const Slot all = bytes, ignored = source(operand(3), predicate_type);
    bytes = temporary(4);
    hidden("selp.b32", {bytes, constant(0, 4), all, ignored});
  } else if (given > 3) {
    bytes = source(operand(3), word32);
  }
  auto& i = emit(handler("cp.async." + std::to_string(size)), {to.base, from.base, bytes});
  finish_access(i, to, Space::shared, static_cast<unsigned>(size));
  i.target = static_cast<std::uint32_t>(static_cast<std::int32_t>(from.offset));
}

// mbarrier. o: result, address, count or what to wait for.
void Decoder::phase_barrier(const Words& words) {
  static const std::map<std::string_view, std::string_view> modifiers{
      {"release", ""},       {"acquire", ""},     {"relaxed", ""}, {"cta", ""},
      {"shared", ""},        {"shared::cta", ""}, {"b64", ""},     {"noComplete", ".noComplete"},
      {"parity", ".parity"}, {"noinc", ".noinc"}};
  const bool copies = words[0] == "cp";
  std::string name = copies ? "cp.async.mbarrier.arrive" : "mbarrier." + std::string(words.size() > 1 ? words[1] : "");
  if (name == "mbarrier.try_wait") name = "mbarrier.test_wait";
  for (std::size_t n = copies ? 4 : 2; n < words.size(); ++n) {
    const auto found = modifiers.find(words[n]);
    if (found == modifiers.end()) refuse("the modifier ." + std::string(words[n]) + " of");
    name += found->second;
  }
  const Handler found = handler(name);
  if (name == "mbarrier.pending_count") {
    emit(found, {destination(operand(0), word32), 0, source(operand(1), word64)});
    return;
  }
  const bool waits = name.starts_with("mbarrier.test_wait"), arrives = name.starts_with("mbarrier.arrive");
  const std::size_t at = waits || arrives ? 1 : 0;
  const Slot result = waits ? destination(operand(0), predicate_type) : arrives ? destination(operand(0), word64) : 0;
  const Address a = address(operand(at));
  Slot value = constant(1, 4);
  if (statement->operands.size() > at + 1)
    value = source(operand(at + 1), waits && !has(words, "parity") ? word64 : word32);
  auto& i = emit(found, {result, a.base, value});
  finish_access(i, a, space_in(words) == Space::shared ? Space::shared : Space::generic, 8);
  i.may_spin = i.waits = waits;
  i.acquires = waits && !has(words, "relaxed");
  i.releases = (arrives || copies) && !has(words, "relaxed");
}

}  // namespace sim
