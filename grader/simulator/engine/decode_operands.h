// Registers, immediates, symbols and temporaries of the function that is being decoded, as slots.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "engine/decode_forms.h"
#include "engine/isa/table.h"
#include "engine/kernel_code.h"

namespace sim {

using ptx::Operand;

using ptx::Statement;

inline std::uint32_t align(std::uint32_t value, std::uint32_t to) { return (value + to - 1) / to * to; }
inline Slot slot(Bank bank, std::uint32_t offset) { return static_cast<Slot>(bank) << bank_shift | offset; }
// Where %tid and its like lie, all of 32 bits.
const std::unordered_map<std::string_view, Slot>& special_registers();

struct OperandDecoder {
  OperandDecoder(const ptx::Module& m, const Layout& l, KernelCode& p) : module(m), layout(l), program(p) {}

  using Space = ptx::Space;
  const ptx::Module& module;
  const Layout& layout;
  KernelCode& program;
  const Table& table = instructions();

  // Of the function at hand.
  const ptx::Function* function = nullptr;
  const Statement* statement = nullptr;
  std::uint32_t frame_bytes = 0;
  std::vector<Slot> registers;
  std::vector<std::uint32_t> definitions;  // per register: how many statements write it
  std::vector<bool> mentioned;             // per register: met in a statement so far
  std::map<std::pair<std::uint32_t, std::string_view>, Area> areas;  // .param variables of the body
  std::map<std::string_view, Area> formal;                           // parameters and results
  std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t> locals;
  std::map<std::pair<unsigned, unsigned>, Slot> temporaries;  // (bytes, how many so far) -> slot
  std::map<unsigned, unsigned> temporaries_used;
  bool is_kernel = false;
  struct Fixup {
    std::size_t instruction;
    std::uint32_t label;  // a statement
  };
  std::vector<Fixup> fixups;
  std::vector<std::pair<std::size_t, std::vector<std::uint32_t>>> table_fixups;
  std::vector<std::uint32_t> statement_pc;
  std::vector<std::uint32_t> statement_line;  // place per statement, lines of 0 replaced

  // Of the kernel as a whole.
  std::map<std::pair<std::uint64_t, unsigned>, Slot> constants;
  std::unordered_map<std::string_view, std::uint32_t> shared;
  std::map<std::pair<std::uint32_t, unsigned>, Slot> parameter_slots;
  std::vector<Area> kernel_parameters;
  std::vector<std::uint32_t> pending;  // functions that are called and not yet decoded

  [[noreturn]] void refuse(std::string_view what) const {
    std::string message = "the simulator does not know ";
    message += what;
    if (statement) {
      message += " '" + std::string(statement->text.substr(0, 200)) + "'";
      const ptx::Place place = module.places[statement_line[static_cast<std::size_t>(statement - function->statements.data())]];
      if (place.line) message += " (" + std::string(place.file) + ":" + std::to_string(place.line) + ")";
    }
    message += " in " + std::string(function->name);
    throw Refusal(message);
  }

  // --- operands

  Slot constant(std::uint64_t bits, unsigned bytes) {
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

  Slot in_frame(unsigned bytes) {
    if (bytes == 0) {
      frame_bytes = align(frame_bytes, 4) + 4;
      return slot(frame_bank, frame_bytes - 4);
    }
    frame_bytes = align(frame_bytes, 64) + bytes * lane_count;
    return slot(frame_bank, frame_bytes - bytes * lane_count);
  }
  Slot temporary(unsigned bytes) {
    const auto [at, fresh] = temporaries.try_emplace({bytes, temporaries_used[bytes]++}, 0);
    if (fresh) at->second = in_frame(bytes);
    return at->second;
  }
  Slot register_slot(std::int32_t reg) {
    mentioned[static_cast<std::size_t>(reg)] = true;
    return registers[static_cast<std::size_t>(reg)];
  }

  // A register that one statement writes, before anything reads it, with a value that never changes afterwards (a
  // constant, a parameter, another such register) needs no instruction: it is that value's slot. ptxas does the same.
  bool is_written_once(std::int32_t reg) const { return definitions[static_cast<std::size_t>(reg)] == 1; }
  bool alias(const Operand& to, const Operand& from, const Type& type) {
    if (to.kind != Operand::Kind::reg || statement->guard >= 0 || width(to.reg) != type.bytes || type.bytes == 0) return false;
    if (!is_written_once(to.reg) || mentioned[static_cast<std::size_t>(to.reg)]) return false;
    if (from.kind == Operand::Kind::reg) {
      const bool settled = is_written_once(from.reg) && mentioned[static_cast<std::size_t>(from.reg)] && width(from.reg) == type.bytes;
      if (!settled || from.negated) return false;
    } else if (from.kind == Operand::Kind::symbol) {
      const bool fixed = special_registers().contains(from.name) ? type.bytes == 4 : !from.name.starts_with('%') && !in_scope(locals, from);
      if (!fixed) return false;
    } else if (from.kind != Operand::Kind::immediate) {
      return false;
    }
    return alias(to, source(from, type));
  }
  bool alias(const Operand& to, Slot value) {
    registers[static_cast<std::size_t>(to.reg)] = value;
    mentioned[static_cast<std::size_t>(to.reg)] = true;
    return true;
  }
  void count_definitions() {
    definitions.assign(function->registers.size(), 0);
    mentioned.assign(function->registers.size(), false);
    const auto count = [&](const auto& self, const Operand& o) -> void {
      if (o.reg >= 0 && o.kind == Operand::Kind::reg) ++definitions[static_cast<std::size_t>(o.reg)];
      if (o.second >= 0) ++definitions[static_cast<std::size_t>(o.second)];
      for (const auto& part : o.parts) self(self, part);
    };
    for (const auto& s : function->statements) {
      if (!s.operands.empty()) count(count, s.operands[0]);
    }
  }

  unsigned width(std::int32_t reg) const { return function->registers[static_cast<std::size_t>(reg)].bytes; }

  template <class T> const T* in_scope(const std::map<std::pair<std::uint32_t, std::string_view>, T>& of, const Operand& o) const {
    for (auto scope = o.scope;;) {
      if (const auto found = of.find({scope, o.name}); found != of.end()) return &found->second;
      if (function->scope_parents[scope] == scope) return nullptr;
      scope = function->scope_parents[scope];
    }
  }

  std::uint64_t immediate(const Operand& o, const Type& type) const {
    if (type.real && o.float_width && type.bytes * 8u != o.float_width) {
      if (type.bytes == 4) return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(o.bits)));
      if (type.bytes == 8) return std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(o.bits))));
    }
    return o.bits;
  }

  // The lanes of a value, with exactly the width of the type.
  Slot source(const Operand& o, const Type& type) {
    switch (o.kind) {
      case Operand::Kind::reg: return from_register(o, type);
      case Operand::Kind::immediate: return constant(immediate(o, type), type.bytes);
      case Operand::Kind::symbol: return from_symbol(o, type);
      case Operand::Kind::vector: return from_parts(o, type);
      default: refuse("the operand of");
    }
  }
  Slot from_register(const Operand& o, const Type& type) {
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
  Slot from_symbol(const Operand& o, const Type& type) {
    if (const auto found = special_registers().find(o.name); found != special_registers().end()) return from_special(found->second, type);
    if (o.name == "WARP_SZ") return constant(lane_count, type.bytes);
    if (o.name.starts_with("%clock") || o.name.starts_with("%globaltimer")) {
      const Slot value = temporary(type.bytes);
      auto& i = hidden("nothing", {value});
      i.flow = Flow::clock;
      i.size = static_cast<std::uint8_t>(type.bytes);
      i.target = o.name.ends_with("_hi") ? 32 : 0;
      return value;
    }
    if (o.name.starts_with("%pm")) return constant(0, type.bytes);
    if (o.name.starts_with('%')) refuse("the register " + std::string(o.name) + " in");
    return address_of(o, type);
  }
  Slot from_special(Slot special, const Type& type) {
    if (type.bytes == 4) return special;
    if (type.bytes != 2 && type.bytes != 8) refuse("a special register of this width in");
    const Slot resized = temporary(type.bytes);
    hidden("cvt.u" + std::to_string(8 * type.bytes) + ".u32", {resized, special});
    return resized;
  }
  Slot address_of(const Operand& o, const Type& type) {
    if (type.bytes != 4 && type.bytes != 8) refuse("the symbol " + std::string(o.name) + " in");
    if (const auto* offset = in_scope(locals, o)) {
      const Slot address = temporary(type.bytes);
      hidden(type.bytes == 8 ? "local_address.b64" : "local_address.b32", {address}).offset = static_cast<std::int64_t>(*offset + o.bits);
      return address;
    }
    if (const auto found = shared.find(o.name); found != shared.end()) return constant(found->second + o.bits, type.bytes);
    if (const auto found = layout.globals.find(o.name); found != layout.globals.end()) return constant(found->second + o.bits, type.bytes);
    if (const auto found = module.by_name.find(o.name); found != module.by_name.end()) {
      return constant(function_window + 16ull * found->second, type.bytes);
    }
    if (const auto found = formal.find(o.name); found != formal.end() && is_kernel) {
      return constant(parameter_window + found->second.offset + o.bits, type.bytes);
    }
    refuse("the symbol " + std::string(o.name) + " in");
  }
  Slot from_parts(const Operand& o, const Type& type) {
    const auto count = static_cast<unsigned>(o.parts.size());
    if (count < 2 || count > 4 || type.bytes % count) refuse("the vector in");
    const Slot whole = temporary(type.bytes);
    std::vector<Slot> slots{whole};
    for (const auto& part : o.parts) slots.push_back(source(part, {"", type.bytes / count, false, false}));
    hidden("pack.b" + std::to_string(8 * type.bytes) + ".b" + std::to_string(8 * type.bytes / count), slots);
    return whole;
  }

  // Where a result goes; if the register is wider, extends it afterwards.
  struct Extension {
    Slot to, from;
    std::string name;
  };
  std::vector<Extension> extensions;

  Slot destination(const Operand& o, const Type& type) {
    if (o.kind == Operand::Kind::sink) return temporary(type.bytes);
    if (o.kind != Operand::Kind::reg) refuse("the destination of");
    const unsigned bytes = width(o.reg);
    const Slot at = register_slot(o.reg);
    if (bytes == type.bytes) return at;
    if (bytes == 0 || type.bytes == 0 || bytes < type.bytes) refuse("a destination of this width in");
    const Slot narrow = temporary(type.bytes);
    const char* sign = type.is_signed ? "s" : "u";
    extensions.push_back({at, narrow, std::string("cvt.") + sign + std::to_string(8 * bytes) + "." + sign + std::to_string(8 * type.bytes)});
    return narrow;
  }
  Slot predicate_at(std::int32_t reg) { return reg >= 0 ? register_slot(reg) : temporary(0); }

  // --- emitting

  Instruction& emit(Handler handler, const std::vector<Slot>& operands, bool guarded = true) {
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
    i.site = static_cast<std::uint32_t>(program.code.size() - 1);
    return i;
  }
  Handler handler(const std::string& name) const {
    const Handler found = table.find(name);
    if (!found) refuse("the instruction");
    return found;
  }
  Instruction& hidden(const std::string& name, const std::vector<Slot>& operands) {
    auto& i = emit(handler(name), operands, false);
    i.hidden = true;
    return i;
  }
  void finish_statement() {
    for (const auto& e : extensions) {
      auto& i = emit(handler(e.name), {e.to, e.from});
      i.hidden = true;
    }
    extensions.clear();
    temporaries_used.clear();
  }

  const Operand& operand(std::size_t n) const {
    if (n >= statement->operands.size()) refuse("so few operands in");
    return statement->operands[n];
  }
};

}  // namespace sim
