// Recursive descent over PTX as nvcc emits it and as people write it by hand.
#pragma once

#include <optional>

#include "device.h"
#include "engine/ptx/lexer.h"
#include "engine/ptx/module.h"
#include "engine/ptx/places.h"

namespace sim::ptx {

// Bytes of a type, 0 for a predicate; nothing if it is none.
std::optional<unsigned> bytes_of(std::string_view type);
std::optional<Space> space_of(std::string_view word);

struct RegisterRange {
  std::int32_t first = 0;
  std::uint64_t count = 0;
};

struct Scope {
  std::uint32_t id = 0;
  std::unordered_map<std::string_view, std::int32_t> names;
  std::unordered_map<std::string_view, RegisterRange> ranges;
};

class Parser {
 public:
  explicit Parser(Module& module) : module_(module), lexer_(module.text) {}
  void run();

 private:
  [[noreturn]] void fail(const Token& at, std::string_view expected) const;
  bool accept(std::string_view text);
  void expect(std::string_view text);
  std::string_view word();
  std::uint64_t number();
  std::uint32_t small_number() { return static_cast<std::uint32_t>(number()); }
  void skip_line(unsigned line);
  void top_level();
  void file();
  void loc();
  void section();

  // After the state space: [.align N] [.v2|.v4] .type name [dims] [= values]
  Variable variable(Space space);
  void values(Variable& into, unsigned element, std::size_t& offset);
  std::vector<Variable> parameter_list();
  void function(bool entry);
  void tuning(Function& f);
  void open_scope();
  void body();
  void directive();

  // Notes what is not understood and goes on behind its semicolon.
  void skip_statement(const Token& first);
  void registers();
  std::int32_t find_register(std::string_view name) const;
  void statement();
  std::int32_t predicate();
  void label(std::string_view name);
  Operand operand();
  void name(Operand& result);
  void address(Operand& result);

  Module& module_;
  Lexer lexer_;
  Places places_;
  Function* function_ = nullptr;
  std::vector<Scope> scopes_;
  int depth_ = 0;
  bool external_ = false, seen_outside_ = false;
};

}  // namespace sim::ptx
