// What a PTX module says, as parsed: variables, functions, instructions with resolved registers and source places.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/ptx/space.h"

namespace sim::ptx {

struct Initialiser {
  std::size_t offset = 0;  // bytes from the start of the variable
  unsigned width = 0;      // bytes
  std::uint64_t bits = 0;
  std::string_view symbol;  // if set, its address (generic, or in its own space) plus bits
};

struct Variable {
  std::string_view name;
  Space space = Space::global;
  std::size_t alignment = 1, size = 0;
  std::uint32_t scope = 0;  // braces of the function that it stands in
  bool managed = false;  // the host sees it, too
  bool external = false;  // of a size that the launch decides (.extern .shared), or of another module
  bool local = false;     // no other module sees it
  std::vector<Initialiser> values;
};

struct Operand {
  enum class Kind : std::uint8_t { none, reg, immediate, symbol, address, vector, sink } kind = Kind::none;
  std::string_view name;         // symbol, label, special register; base symbol of an address
  std::int32_t reg = -1;         // register number; of an address its base (-1: symbol or immediate)
  std::int32_t second = -1;      // the predicate of d|p
  std::uint64_t bits = 0;        // of an immediate; of an address its offset
  std::uint8_t float_width = 0;  // of an immediate
  bool negated = false;          // !p, -x
  std::uint32_t scope = 0;       // where a label is looked up
  std::vector<Operand> parts;    // of a vector, or of a list in parentheses
};

struct Statement {
  std::string_view opcode, text;
  std::vector<Operand> operands;
  std::int32_t guard = -1;
  bool guard_negated = false;
  std::uint32_t place = 0;
  bool unknown = false;  // the parser does not understand it
};

struct Register {
  std::uint8_t bytes;  // per lane; 0 for a predicate
};

struct Function {
  std::string_view name;
  bool entry = false, defined = false;
  bool local = false;  // no other module sees it
  std::vector<Variable> results, parameters;
  std::vector<Variable> variables;  // .local, .shared, .param of its body
  std::vector<Register> registers;
  std::vector<Statement> statements;
  std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t> labels;  // (scope, name) -> statement
  std::vector<std::uint32_t> scope_parents;
  std::unordered_map<std::string_view, std::vector<Operand>> branch_targets;
  std::uint32_t max_threads = 1024;
};

struct Place {
  std::string_view file;
  std::uint32_t line = 0, column = 0;
  bool reads_ahead = false;  // what it reads beyond what is there, it does not use
  std::uint32_t caller = 0;  // the place that its function is inlined at, of Module::places; 0: it is not
  std::string_view function{};  // that is inlined there, mangled
};

struct Module {
  std::string text;
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::unordered_map<std::string_view, std::uint32_t> by_name;  // of functions
  std::unordered_map<std::string_view, std::string> texts;  // of the section with names of inlined functions, by label
  std::vector<Place> places;  // resolved to the line of the user's source
  // Of a module that is linked: those that it is made of, which own the texts, and the names that it has given.
  std::vector<std::unique_ptr<Module>> parts;
  std::deque<std::string> names;
};

// Throws Refusal if the text is not PTX. What it does not understand inside a function is a statement of
// its own (Statement::unknown); registers of an unknown kind are not declared, so that who uses them is refused.
void parse(Module& module, std::string_view text);

// Makes one module of those that nvcc -rdc=true has made of several files. Who uses what none of them defines is
// refused when its code is made.
void link(Module& module, std::vector<std::unique_ptr<Module>> parts);

}  // namespace sim::ptx
