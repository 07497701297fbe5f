// Registers, immediates, symbols and temporaries of the function that is being decoded, as slots.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "engine/decode/forms.h"
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
  std::vector<std::uint32_t> appearances;  // per register, in all statements
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

  // Names the statement and its line.
  [[noreturn]] void refuse(std::string_view what) const;

  // --- operands

  Slot constant(std::uint64_t bits, unsigned bytes);
  Slot in_frame(unsigned bytes);
  Slot temporary(unsigned bytes);
  Slot register_slot(std::int32_t reg);

  // A register that one statement writes, before anything reads it, with a value that never changes afterwards (a
  // constant, a parameter, another such register) needs no instruction: it is that value's slot. ptxas does the same.
  bool is_written_once(std::int32_t reg) const { return definitions[static_cast<std::size_t>(reg)] == 1; }
  bool alias(const Operand& to, const Operand& from, const Type& type);
  bool alias(const Operand& to, Slot value);
  // Whether another statement than the one that writes it may read a register.
  bool is_used(const Operand& o) const {
    return o.kind != Operand::Kind::reg || appearances[static_cast<std::size_t>(o.reg)] > 1;
  }
  void count_definitions();

  unsigned width(std::int32_t reg) const { return function->registers[static_cast<std::size_t>(reg)].bytes; }

  template <class T> const T* in_scope(const std::map<std::pair<std::uint32_t, std::string_view>, T>& of,
                                       const Operand& o) const {
    for (auto scope = o.scope;;) {
      if (const auto found = of.find({scope, o.name}); found != of.end()) return &found->second;
      if (function->scope_parents[scope] == scope) return nullptr;
      scope = function->scope_parents[scope];
    }
  }
  std::uint64_t immediate(const Operand& o, const Type& type) const;
  // The lanes of a value, with exactly the width of the type.
  Slot source(const Operand& o, const Type& type);
  Slot from_register(const Operand& o, const Type& type);
  Slot from_symbol(const Operand& o, const Type& type);
  Slot from_special(Slot special, const Type& type);
  Slot address_of(const Operand& o, const Type& type);
  Slot from_parts(const Operand& o, const Type& type);

  // Where a result goes; if the register is wider, extends it afterwards.
  struct Extension {
    Slot to, from;
    std::string name;
  };
  std::vector<Extension> extensions;
  Slot destination(const Operand& o, const Type& type);
  Slot predicate_at(std::int32_t reg) { return reg >= 0 ? register_slot(reg) : temporary(0); }

  // --- emitting

  Instruction& emit(Handler handler, const std::vector<Slot>& operands, bool guarded = true);
  Handler handler(const std::string& name) const;
  Instruction& hidden(const std::string& name, const std::vector<Slot>& operands);
  void finish_statement();
  const Operand& operand(std::size_t n) const;
};

}  // namespace sim
