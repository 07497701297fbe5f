// Which registers of a function lead from 32-bit arithmetic to an address of 64 bits, and the instructions that keep
// their exact values; checks/overflow.h says what these do.
#include "engine/checks/overflow.h"

#include "engine/decode/decoder.h"

namespace sim {
namespace {

const std::unordered_map<std::string_view, Handler>& exact_handlers() {
  static const std::unordered_map<std::string_view, Handler> table{{"add", exact_add},      {"sub", exact_subtract},
                                                                   {"mul", exact_multiply}, {"mad", exact_multiply_add},
                                                                   {"shl", exact_shift},    {"cvt", exact_widen}};
  return table;
}

template <class F> void each_register(const Operand& o, F f) {
  if (o.kind == Operand::Kind::reg) f(o.reg);
  for (const auto& part : o.parts) each_register(part, f);
}
template <class F> void each_source(const Statement& s, F f) {
  for (std::size_t n = 1; n < s.operands.size(); ++n) each_register(s.operands[n], f);
}
template <class F> void each_result(const Statement& s, F f) {
  if (!s.operands.empty()) each_register(s.operands[0], f);
}

// An odd factor of this size is no stride: hashes multiply by such numbers, and compilers do to divide exactly.
bool scrambles(const Operand& o) {
  const auto value = static_cast<std::int32_t>(o.bits);
  return o.kind == Operand::Kind::immediate && value % 2 != 0 && (value > 1 << 20 || value < -(1 << 20));
}
bool below_zero(const Operand& o) {
  return o.kind == Operand::Kind::immediate && static_cast<std::int32_t>(o.bits) < 0;
}

}  // namespace

Decoder::Exactly Decoder::exactly(const Statement& s) const {
  const Words words = split(s.opcode);
  const std::string_view name = words[0], type = words.back();
  const std::size_t operands = name == "mad" || name == "selp"                    ? 4
                               : name == "mov" || name == "cvt" || name == "cvta" ? 2
                                                                                  : 3;
  if (s.operands.size() != operands || s.operands[0].kind != Operand::Kind::reg) return {};
  const unsigned bits = width(s.operands[0].reg) * 8;
  const std::string_view sizes = bits == 32 ? "s32 u32 b32" : bits == 64 ? "s64 u64 b64" : "";
  if (name == "cvta" || name == "selp" || name == "min" || name == "max" ||
      (name == "mov" && s.operands[1].kind != Operand::Kind::vector))
    return {sizes.find(type) != sizes.npos ? exact_choice : nullptr};
  const bool widens = bits == 64 && words.size() == 3 && (type == "s32" || type == "u32") &&
                      (words[1] == "wide" || (name == "cvt" && words[1].ends_with("64")));
  const bool whole =
      name != "cvt" && (words.size() == 2 || (words.size() == 3 && words[1] == "lo")) && sizes.find(type) != sizes.npos;
  const auto found = exact_handlers().find(name);
  if (found == exact_handlers().end() || !(widens || whole) || std::ranges::any_of(s.operands, scrambles)) return {};
  return {found->second, widens, widens && type == "u32"};
}

// Whether a result is what remains of a value when a part of it, which is not exact arithmetic, is taken away: x - x /
// n
// * n. Where x has wrapped, as a hash may, that is no error.
bool Decoder::is_remainder(const Statement& s) const {
  const std::string_view name = std::string_view(s.opcode).substr(0, 3);
  const auto& o = s.operands;
  const bool added = name == "mad" && (below_zero(o[1]) || below_zero(o[2]));
  if ((name != "sub" && !added) || o[added ? 3 : 1].kind != Operand::Kind::reg) return false;
  const std::int32_t whole = o[added ? 3 : 1].reg;
  std::set<std::pair<std::int32_t, bool>> met;  // register, and whether what follows it is exact alone
  std::vector<std::pair<std::int32_t, bool>> todo;
  const auto add = [&](bool exact) { return [&, exact](std::int32_t reg) { todo.emplace_back(reg, exact); }; };
  for (std::size_t n = added ? 1 : 2; n < (added ? 3u : o.size()); ++n) each_register(o[n], add(true));
  while (!todo.empty()) {
    const auto [reg, exact] = todo.back();
    todo.pop_back();
    if (!met.emplace(reg, exact).second) continue;
    if (reg == whole && !exact) return true;
    const auto found = writers.find(reg);
    if (found == writers.end()) continue;
    for (const auto* writer : found->second) each_source(*writer, add(exact && exactly(*writer).run));
  }
  return false;
}

// The registers that lead to an address by exact arithmetic alone, and that are results of it.
std::set<std::int32_t> Decoder::leading_to(std::vector<std::int32_t> todo) const {
  std::set<std::int32_t> found;
  while (!todo.empty()) {
    const auto reg = todo.back();
    todo.pop_back();
    const auto written = writers.find(reg);
    if (found.contains(reg) || written == writers.end()) continue;
    for (const auto* s : written->second) {
      if (!exactly(*s).run) continue;
      found.insert(reg);
      each_source(*s, [&](std::int32_t source) { todo.push_back(source); });
    }
  }
  return found;
}

void Decoder::find_indices() {
  exact.clear();
  writers.clear();
  arithmetic.clear();
  overflow_checks.clear();
  if (!checks_overflow) return;
  std::vector<std::int32_t> addresses;
  for (const auto& s : function->statements) {
    each_result(s, [&](std::int32_t reg) { writers[reg].push_back(&s); });
    for (const auto& o : s.operands) {
      if (is_address(o)) addresses.push_back(o.reg);
    }
  }
  for (const auto reg : leading_to(std::move(addresses))) exact[reg] = in_frame(8);
}

bool Decoder::is_address(const Operand& o) const {
  return o.kind == Operand::Kind::address && o.reg >= 0 && width(o.reg) == 8;
}
bool Decoder::is_followed(const Operand& o) const { return o.kind == Operand::Kind::reg && exact.contains(o.reg); }

Instruction& Decoder::follow(Handler handler, const std::vector<Slot>& slots) {
  auto& i = emit(handler, slots);
  i.hidden = true;
  return i;
}

void Decoder::before_statement() {
  for (const auto& o : statement->operands) {
    if (!is_address(o) || !exact.contains(o.reg)) continue;
    overflow_checks.emplace_back(follow(check_overflow, {exact.at(o.reg), register_slot(o.reg)}).site, o.reg);
  }
  const Exactly how = exactly(*statement);
  if (!how.run || how.run == exact_choice || !exact.contains(operand(0).reg) || is_remainder(*statement)) return;
  std::vector<Slot> slots{exact.at(operand(0).reg)};
  std::uint32_t wide = 0;
  for (std::size_t n = 1; n < statement->operands.size(); ++n) {
    const Operand& o = operand(n);
    const bool narrow = how.run == exact_shift && n == 2;
    const bool of_64 = !narrow && width(operand(0).reg) == 8 && (!how.widens || n == 3);
    if (how.is_unsigned && n < 3) {
      const Slot from = source(o, word32), extended = temporary(8);
      if (is_followed(o))
        follow(exact_widen_unsigned, {extended, exact.at(o.reg), from});
      else
        hidden("cvt.u64.u32", {extended, from});
      slots.push_back(extended);
    } else {
      slots.push_back(is_followed(o) && !narrow ? exact.at(o.reg) : source(o, of_64 ? word64 : word32));
    }
    if (of_64 || (how.is_unsigned && n < 3) || (is_followed(o) && !narrow)) wide |= 1u << n;
  }
  auto& i = follow(how.run, slots);
  i.target = wide;
  if (width(operand(0).reg) == 4) arithmetic.emplace_back(operand(0).reg, i.site);
}

void Decoder::after_statement() {
  const Exactly how = exactly(*statement);
  if (how.run && how.run != exact_choice && !is_remainder(*statement)) return;
  each_result(*statement, [&](std::int32_t reg) {
    if (!exact.contains(reg)) return;
    std::vector<Slot> slots{exact.at(reg), register_slot(reg)};
    for (std::size_t n = 1; how.run && n < statement->operands.size(); ++n) {
      const Operand& o = operand(n);
      if (!is_followed(o) || o.reg == reg) continue;
      slots.push_back(exact.at(o.reg));
      slots.push_back(register_slot(o.reg));
    }
    auto& i = follow(exact_choice, slots);
    i.size = static_cast<std::uint8_t>(width(reg));
    i.target = static_cast<std::uint32_t>(slots.size() / 2 - 1);
  });
}

void Decoder::list_arithmetic() {
  for (const auto& [instruction, address] : overflow_checks) {
    const auto leading = leading_to({address});
    auto& list = program.lists;
    program.code[instruction].target = static_cast<std::uint32_t>(list.size());
    const auto count = list.size();
    list.push_back(0);
    for (const auto& [reg, site] : arithmetic) {
      if (!leading.contains(reg)) continue;
      ++list[count];
      list.insert(list.end(), {site, exact.at(reg), register_slot(reg)});
    }
  }
}

}  // namespace sim
