#include "engine/decode/operands.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace sim {

const std::unordered_map<std::string_view, Slot>& special_registers() {
  static const auto of_warp = [](WarpSpecial s) {
    return slot(warp_bank, static_cast<std::uint32_t>(s) * special_bytes);
  };
  static const auto of_launch = [](LaunchSpecial s) {
    return slot(launch_bank, static_cast<std::uint32_t>(s) * special_bytes);
  };
  using W = WarpSpecial;
  using L = LaunchSpecial;
  static const std::unordered_map<std::string_view, Slot> table{
      {"%tid.x", of_warp(W::tid_x)},
      {"%tid.y", of_warp(W::tid_y)},
      {"%tid.z", of_warp(W::tid_z)},
      {"%warpid", of_warp(W::warp)},
      {"%ctaid.x", of_warp(W::ctaid_x)},
      {"%ctaid.y", of_warp(W::ctaid_y)},
      {"%ctaid.z", of_warp(W::ctaid_z)},
      {"%laneid", of_launch(L::lane)},
      {"%lanemask_eq", of_launch(L::lanemask_eq)},
      {"%lanemask_le", of_launch(L::lanemask_le)},
      {"%lanemask_lt", of_launch(L::lanemask_lt)},
      {"%lanemask_ge", of_launch(L::lanemask_ge)},
      {"%lanemask_gt", of_launch(L::lanemask_gt)},
      {"%ntid.x", of_launch(L::ntid_x)},
      {"%ntid.y", of_launch(L::ntid_y)},
      {"%ntid.z", of_launch(L::ntid_z)},
      {"%nctaid.x", of_launch(L::nctaid_x)},
      {"%nctaid.y", of_launch(L::nctaid_y)},
      {"%nctaid.z", of_launch(L::nctaid_z)},
      {"%nwarpid", of_launch(L::warps)},
      {"%smid", of_warp(W::multiprocessor)},
      {"%nsmid", of_launch(L::multiprocessors)},
      {"%gridid", of_launch(L::zero)},
      {"%dynamic_smem_size", of_launch(L::dynamic_shared)},
      {"%total_smem_size", of_launch(L::total_shared)},
      {"%reserved_smem_offset_1", of_launch(L::reserved_shared)},
      {"%envreg1", of_launch(L::workspace_high)},
      {"%envreg2", of_launch(L::workspace_low)}};
  return table;
}

namespace {

// What people call the family of an instruction that is not known; empty of others.
std::string_view feature_of(std::string_view instruction) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 19> features{{
      {"tex.", "textures"},
      {"tld4.", "textures"},
      {"txq.", "textures"},
      {"istypep.", "textures"},
      {"suld.", "surfaces"},
      {"sust.", "surfaces"},
      {"sured.", "surfaces"},
      {"suq.", "surfaces"},
      {"wgmma.", "wgmma"},
      {"tcgen05.", "tcgen05"},
      {"cp.async.bulk", "TMA"},
      {"cp.reduce.async.bulk", "TMA"},
      {"tensormap.", "TMA"},
      {"barrier.cluster", "thread block clusters"},
      {"mapa.", "thread block clusters"},
      {"getctarank.", "thread block clusters"},
      {".explicitcluster", "thread block clusters"},
      {".reqnctapercluster", "thread block clusters"},
      {".blocksareclusters", "thread block clusters"},
  }};
  if (instruction.find("__cudaCDP2") != instruction.npos) return "kernels that launch kernels";
  const auto found = std::ranges::find_if(features, [&](const auto& f) { return instruction.starts_with(f.first); });
  return found == features.end() ? "" : found->second;
}

}  // namespace

void OperandDecoder::refuse(std::string_view what) const {
  Gap gap{Gap::Kind::code, std::string(what)};
  gap.function = function->name;
  std::string message = "the simulator does not know ";
  if (statement) {
    const ptx::Place& place =
        module.places[statement_line[static_cast<std::size_t>(statement - function->statements.data())]];
    gap.kind = Gap::Kind::instruction;
    gap.subject = statement->text.substr(0, 200);
    std::ranges::replace(gap.subject, '\n', ' ');
    gap.feature = feature_of(statement->text);
    gap.file = place.file;
    gap.line = place.line;
    if (!gap.feature.empty()) message += gap.feature + ": ";
    message += std::string(what) + " '" + gap.subject + "'";
    if (gap.line) message += " (" + gap.file + ":" + std::to_string(gap.line) + ")";
  } else {
    message += what;
  }
  throw Refusal(message + " in " + gap.function, gap);
}

Slot OperandDecoder::constant(std::uint64_t bits, unsigned bytes) {
  if (bytes == 0) bits = bits ? 1 : 0;
  if (bytes && bytes < 8) bits &= (1ull << 8 * bytes) - 1;
  const auto [at, fresh] = constants.try_emplace({bits, bytes}, 0);
  if (fresh) {
    const auto offset = align(static_cast<std::uint32_t>(program.constants.size()), 64);
    program.constants.resize(offset + std::max(64u, bytes * lane_count));
    if (bytes == 0) {
      const Mask mask = bits ? all_lanes : 0;
      std::memcpy(program.constants.data() + offset, &mask, sizeof mask);
    }
    for (unsigned l = 0; l < lane_count; ++l) std::memcpy(program.constants.data() + offset + l * bytes, &bits, bytes);
    at->second = slot(constant_bank, offset);
  }
  return at->second;
}

Slot OperandDecoder::in_frame(unsigned bytes) {
  if (bytes == 0) {
    frame_bytes = align(frame_bytes, 4) + 4;
    return slot(frame_bank, frame_bytes - 4);
  }
  frame_bytes = align(frame_bytes, 64) + bytes * lane_count;
  return slot(frame_bank, frame_bytes - bytes * lane_count);
}

Slot OperandDecoder::temporary(unsigned bytes) {
  const auto [at, fresh] = temporaries.try_emplace({bytes, temporaries_used[bytes]++}, 0);
  if (fresh) at->second = in_frame(bytes);
  return at->second;
}

Slot OperandDecoder::register_slot(std::int32_t reg) {
  mentioned[static_cast<std::size_t>(reg)] = true;
  return registers[static_cast<std::size_t>(reg)];
}

bool OperandDecoder::alias(const Operand& to, const Operand& from, const Type& type) {
  if (to.kind != Operand::Kind::reg || statement->guard >= 0 || width(to.reg) != type.bytes || type.bytes == 0)
    return false;
  if (!is_written_once(to.reg) || mentioned[static_cast<std::size_t>(to.reg)]) return false;
  if (from.kind == Operand::Kind::reg) {
    const bool settled =
        is_written_once(from.reg) && mentioned[static_cast<std::size_t>(from.reg)] && width(from.reg) == type.bytes;
    if (!settled || from.negated) return false;
  } else if (from.kind == Operand::Kind::symbol) {
    const bool fixed = special_registers().contains(from.name) ? type.bytes == 4
                                                               : !from.name.starts_with('%') && !in_scope(locals, from);
    if (!fixed) return false;
  } else if (from.kind != Operand::Kind::immediate) {
    return false;
  }
  return alias(to, source(from, type));
}

bool OperandDecoder::alias(const Operand& to, Slot value) {
  registers[static_cast<std::size_t>(to.reg)] = value;
  mentioned[static_cast<std::size_t>(to.reg)] = true;
  return true;
}

void OperandDecoder::count_definitions() {
  definitions.assign(function->registers.size(), 0);
  mentioned.assign(function->registers.size(), false);
  const auto count = [&](const auto& self, const Operand& o) -> void {
    if (o.reg >= 0 && o.kind == Operand::Kind::reg) ++definitions[static_cast<std::size_t>(o.reg)];
    if (o.second >= 0) ++definitions[static_cast<std::size_t>(o.second)];
    for (const auto& part : o.parts) self(self, part);
  };
  appearances.assign(function->registers.size(), 0);
  const auto appear = [&](const auto& self, const Operand& o) -> void {
    for (const auto reg : {o.reg, o.second}) {
      if (reg >= 0) ++appearances[static_cast<std::size_t>(reg)];
    }
    for (const auto& part : o.parts) self(self, part);
  };
  for (const auto& s : function->statements) {
    if (!s.operands.empty()) count(count, s.operands[0]);
    if (s.guard >= 0) ++appearances[static_cast<std::size_t>(s.guard)];
    for (const auto& o : s.operands) appear(appear, o);
  }
}

std::uint64_t OperandDecoder::immediate(const Operand& o, const Type& type) const {
  if (type.real && o.float_width && type.bytes * 8u != o.float_width) {
    if (type.bytes == 4) return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(o.bits)));
    if (type.bytes == 8)
      return std::bit_cast<std::uint64_t>(
          static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(o.bits))));
  }
  return o.bits;
}

Slot OperandDecoder::source(const Operand& o, const Type& type) {
  switch (o.kind) {
    case Operand::Kind::reg: return from_register(o, type);
    case Operand::Kind::immediate: return constant(immediate(o, type), type.bytes);
    case Operand::Kind::symbol: return from_symbol(o, type);
    case Operand::Kind::vector: return from_parts(o, type);
    default: refuse("the operand of");
  }
}

Slot OperandDecoder::from_register(const Operand& o, const Type& type) {
  const unsigned bytes = width(o.reg);
  const Slot at = register_slot(o.reg);
  if (bytes == type.bytes) {
    if (!o.negated) return at;
    if (bytes != 0) refuse("a negated value in");
    const Slot inverse = temporary(0);
    hidden("not.pred", {inverse, at});
    return inverse;
  }
  if (bytes == 0 || type.bytes == 0 || bytes < type.bytes) refuse("an operand of this width in");
  const Slot narrow = temporary(type.bytes);
  hidden("cvt.u" + std::to_string(8 * type.bytes) + ".u" + std::to_string(8 * bytes), {narrow, at});
  return narrow;
}

Slot OperandDecoder::from_symbol(const Operand& o, const Type& type) {
  if (const auto found = special_registers().find(o.name); found != special_registers().end())
    return from_special(found->second, type);
  if (o.name == "WARP_SZ") return constant(lane_count, type.bytes);
  if (o.name.starts_with("%clock") || o.name.starts_with("%globaltimer")) {
    const Slot value = temporary(type.bytes);
    auto& i = hidden("nothing", {value});
    i.flow = Flow::clock;
    i.size = static_cast<std::uint8_t>(type.bytes);
    i.target = o.name.ends_with("_hi") ? 32 : 0;
    i.offset = o.name.starts_with("%clock") ? clock_lag : 0;
    return value;
  }
  if (o.name.starts_with("%pm")) return constant(0, type.bytes);
  if (o.name.starts_with('%')) refuse("the register " + std::string(o.name) + " in");
  return address_of(o, type);
}

Slot OperandDecoder::from_special(Slot special, const Type& type) {
  if (type.bytes == 4) return special;
  if (type.bytes != 2 && type.bytes != 8) refuse("a special register of this width in");
  const Slot resized = temporary(type.bytes);
  hidden("cvt.u" + std::to_string(8 * type.bytes) + ".u32", {resized, special});
  return resized;
}

Slot OperandDecoder::address_of(const Operand& o, const Type& type) {
  if (type.bytes != 4 && type.bytes != 8) refuse("the symbol " + std::string(o.name) + " in");
  if (const auto* offset = in_scope(locals, o)) {
    const Slot address = temporary(type.bytes);
    hidden(type.bytes == 8 ? "local_address.b64" : "local_address.b32", {address}).offset =
        static_cast<std::int64_t>(*offset + o.bits);
    return address;
  }
  if (const auto found = shared.find(o.name); found != shared.end())
    return constant(found->second + o.bits, type.bytes);
  if (const auto found = layout.globals.find(o.name); found != layout.globals.end())
    return constant(found->second + o.bits, type.bytes);
  if (const auto found = module.by_name.find(o.name); found != module.by_name.end()) {
    return constant(function_window + 16ull * found->second, type.bytes);
  }
  if (const auto found = formal.find(o.name); found != formal.end() && is_kernel) {
    return constant(parameter_window + found->second.offset + o.bits, type.bytes);
  }
  refuse("the symbol " + std::string(o.name) + " in");
}

Slot OperandDecoder::from_parts(const Operand& o, const Type& type) {
  const auto count = static_cast<unsigned>(o.parts.size());
  if (count < 2 || count > 4 || type.bytes % count) refuse("the vector in");
  const Slot whole = temporary(type.bytes);
  std::vector<Slot> slots{whole};
  for (const auto& part : o.parts) slots.push_back(source(part, {"", type.bytes / count, false, false}));
  hidden("pack.b" + std::to_string(8 * type.bytes) + ".b" + std::to_string(8 * type.bytes / count), slots);
  return whole;
}

Slot OperandDecoder::destination(const Operand& o, const Type& type) {
  if (o.kind == Operand::Kind::sink) return temporary(type.bytes);
  if (o.kind != Operand::Kind::reg) refuse("the destination of");
  const unsigned bytes = width(o.reg);
  const Slot at = register_slot(o.reg);
  if (bytes == type.bytes) return at;
  if (bytes == 0 || type.bytes == 0 || bytes < type.bytes) refuse("a destination of this width in");
  const Slot narrow = temporary(type.bytes);
  const char* sign = type.is_signed ? "s" : "u";
  extensions.push_back(
      {at, narrow,
       std::string("cvt.") + sign + std::to_string(8 * bytes) + "." + sign + std::to_string(8 * type.bytes)});
  return narrow;
}

Instruction& OperandDecoder::emit(Handler handler, const std::vector<Slot>& operands, bool guarded) {
  auto& i = program.code.emplace_back();
  i.run = handler;
  if (operands.size() > 6) refuse("so many operands in");
  std::copy(operands.begin(), operands.end(), i.o);
  if (guarded && statement->guard >= 0) {
    if (width(statement->guard) != 0) refuse("a guard that is no predicate in");
    i.guard = register_slot(statement->guard);
    i.guard_negated = statement->guard_negated;
  }
  const auto number = static_cast<std::size_t>(statement - function->statements.data());
  i.place = statement_line[number];
  program.statements.push_back(static_cast<std::uint32_t>(number));
  i.site = static_cast<std::uint32_t>(program.code.size() - 1);
  return i;
}

Handler OperandDecoder::handler(const std::string& name) const {
  const Handler found = table.find(name);
  if (!found) refuse("the instruction");
  return found;
}

Instruction& OperandDecoder::hidden(const std::string& name, const std::vector<Slot>& operands) {
  auto& i = emit(handler(name), operands, false);
  i.hidden = true;
  return i;
}

void OperandDecoder::finish_statement() {
  for (const auto& e : extensions) {
    auto& i = emit(handler(e.name), {e.to, e.from});
    i.hidden = true;
  }
  extensions.clear();
  temporaries_used.clear();
}

const Operand& OperandDecoder::operand(std::size_t n) const {
  if (n >= statement->operands.size()) refuse("so few operands in");
  return statement->operands[n];
}

}  // namespace sim
