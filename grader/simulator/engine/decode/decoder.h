// From parsed statements to instructions with resolved operands and handlers: a method per kind of statement.
#pragma once

#include <array>
#include <functional>
#include <set>
#include <string>

#include "engine/decode/operands.h"

namespace sim {

// An opcode's parts between the dots.
using Words = std::vector<std::string_view>;

inline Words split(std::string_view opcode) {
  Words result;
  while (true) {
    const auto dot = opcode.find('.');
    result.push_back(opcode.substr(0, dot));
    if (dot == opcode.npos) return result;
    opcode.remove_prefix(dot + 1);
  }
}
inline std::string join(const Words& words) {
  std::string result;
  for (const auto word : words) {
    if (!result.empty()) result += '.';
    result += word;
  }
  return result;
}
inline bool has(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
inline void drop(Words& words, std::string_view word) { std::erase(words, word); }
inline std::string bits_name(unsigned bytes) { return ".b" + std::to_string(8 * bytes); }

inline const Type word32{"u32", 4, false, false}, word64{"u64", 8, false, false},
    predicate_type{"pred", 0, false, false};

struct Decoder : OperandDecoder {
  using OperandDecoder::OperandDecoder;
  using Method = void (Decoder::*)(const Words&);
  const Type& type_of(const Words& words) const;

  // --- plain.cpp
  void plain(Words words);
  void move(const Words& words);
  void unpack(const Type& type);
  void convert(const Words& words);
  void compare(const Words& words);
  void note_comparison(const Instruction& i, std::string_view type, Slot a, Slot b, bool equality);
  void select(const Words& words);

  // --- memory.cpp
  Space space_in(const Words& words) const;
  static const char* space_name(Space space);
  struct Address {
    Slot base;
    std::int64_t offset;
    bool narrow;
  };
  Address address(const Operand& o);
  void check_modifiers(const Words& words) const;
  void load(const Words& words);
  void store(const Words& words);
  std::vector<const Operand*> vector_of(const Operand& o, const Words& words) const;
  void memory(const Words& words, const char* kind, Space space, const Type& type, std::vector<Slot> slots,
              const Operand& at);
  static void finish_access(Instruction& i, const Address& a, Space space, unsigned size);
  void order(Instruction& i, const Words& words, bool stores, Space space);
  void load_parameter(const Words& words, const Type& type);
  Slot kernel_parameter(const Area& area, const Type& type, std::uint64_t offset);
  void from_area(const char* name, const Area& area, Slot value, const Type& type, std::uint64_t offset);
  void store_parameter(const Words& words, const Type& type);
  void atomic(const Words& words);
  void to_address(const Words& words);
  void cache_policy(const Words&);
  void is_space(const Words& words);

  // --- async.cpp
  void copy_async(const Words& words);
  void phase_barrier(const Words& words);

  // --- matrix.cpp
  void matrix(const Words& words);
  void meet();
  void fragment(const Operand& o, std::uint32_t matrix, const std::array<std::uint32_t, 3>& mnk,
                std::string_view element, bool written, std::size_t copies);
  void multiply_matrices(const Words& words);
  void move_matrix(const Words& words);
  void load_matrices(const Words& words);

  // --- control.cpp
  std::uint32_t label(const Operand& o) const;
  void branch(const Words& words);
  void leave(const Words& words);
  void trap(const Words&);
  void sleep(const Words&);
  void nothing(const Words&);
  void depend(const Words&);
  void fence_(const Words&);
  Area area_of(const Operand& o) const;
  void call(const Words&);
  std::uint32_t want(std::uint32_t number);
  void barrier(const Words& words);
  // Collectives: the slot of the member mask is number `offset`.
  void shuffle(const Words& words);
  void vote(const Words& words);
  void match(const Words& words);
  void reduce(const Words& words);
  void active_mask(const Words& words);

  // --- overflow.cpp: what leads from 32-bit arithmetic to an address
  struct Exactly {  // how an exact result follows from exact sources
    Handler run = nullptr;  // none: it does not
    bool widens = false, is_unsigned = false;
  };
  Exactly exactly(const Statement& s) const;
  bool is_remainder(const Statement& s) const;
  std::set<std::int32_t> leading_to(std::vector<std::int32_t> addresses) const;
  void find_indices();
  bool is_address(const Operand& o) const;
  bool is_followed(const Operand& o) const;
  Instruction& follow(Handler handler, const std::vector<Slot>& slots);
  void before_statement();
  void after_statement();
  void list_arithmetic();
  bool checks_overflow = false;
  std::map<std::int32_t, Slot> exact;                             // by register
  std::map<std::int32_t, std::vector<const Statement*>> writers;  // by register
  std::vector<std::pair<std::int32_t, std::uint32_t>> arithmetic;       // of 32 bits: register, instruction
  std::vector<std::pair<std::uint32_t, std::int32_t>> overflow_checks;  // instruction, register

  // --- kernel.cpp
  void one_statement();
  void unknown_statement(const Refusal& why, std::size_t start);
  void lay_out_areas(FunctionCode& code);
  bool parameters_are_too_large() const;
  void find_lines();
  void one_function(std::uint32_t number);
  void mark_expectations(std::uint32_t from);
  void mark_passings();
  bool is_only_compared(std::uint32_t load) const;
  void mark_revisions(std::uint32_t from, const std::function<Slot(Slot)>& original);
  void lay_out_shared(std::uint32_t kernel);
  void run(std::uint32_t kernel);
  // Instructions -> which operand is the address.
  std::map<std::uint32_t, std::uint32_t> compares_and_swaps;
  std::set<std::uint32_t> relaxed_atomics;  // in global memory
  std::map<std::uint32_t, std::uint32_t> extremes;  // atomic minima and maxima
  std::set<Slot> shuffled;
  struct Volatile {
    std::uint32_t instruction, address;  // the latter: which operand
    bool load;
  };
  std::vector<Volatile> volatiles;
  std::map<std::uint32_t, std::uint32_t> plain_loads;  // instruction -> operand of the address
};

}  // namespace sim
