// Recursive descent over PTX as nvcc emits it and as people write it by hand.
#include <array>
#include <optional>

#include "device.h"
#include "engine/ptx/lexer.h"
#include "engine/ptx/module.h"
#include "engine/ptx/places.h"

namespace sim::ptx {
namespace {

std::optional<unsigned> bytes_of(std::string_view type) {
  static const std::unordered_map<std::string_view, unsigned> table{
      {".pred", 0}, {".b8", 1},  {".u8", 1},  {".s8", 1},  {".b16", 2}, {".u16", 2},   {".s16", 2},   {".f16", 2},
      {".bf16", 2}, {".b32", 4}, {".u32", 4}, {".s32", 4}, {".f32", 4}, {".f16x2", 4}, {".bf16x2", 4}, {".b64", 8},
      {".u64", 8},  {".s64", 8}, {".f64", 8}, {".b128", 16}};
  const auto found = table.find(type);
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Space> space_of(std::string_view word) {
  static const std::unordered_map<std::string_view, Space> table{{".global", Space::global}, {".const", Space::constant},
                                                                 {".shared", Space::shared}, {".local", Space::local},
                                                                 {".param", Space::parameter}};
  const auto found = table.find(word);
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

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

  void run() {
    while (lexer_.peek().kind != Kind::end) top_level();
    module_.places = places_.resolve();
  }

 private:
  [[noreturn]] void fail(const Token& at, std::string_view expected) const {
    throw Refusal("PTX line " + std::to_string(at.line) + ": expected " + std::string(expected) + ", found '" +
                  std::string(at.text.substr(0, 80)) + "'");
  }
  bool accept(std::string_view text) {
    if (!lexer_.peek().is(text) || lexer_.peek().kind == Kind::end) return false;
    lexer_.take();
    return true;
  }
  void expect(std::string_view text) {
    if (!accept(text)) fail(lexer_.peek(), "'" + std::string(text) + "'");
  }
  std::string_view word() {
    if (lexer_.peek().kind != Kind::word) fail(lexer_.peek(), "a name");
    return lexer_.take().text;
  }
  std::uint64_t number() {
    const bool negative = accept("-");
    if (lexer_.peek().kind != Kind::number) fail(lexer_.peek(), "a number");
    const auto bits = lexer_.take().bits;
    return negative ? 0 - bits : bits;
  }
  std::uint32_t small_number() { return static_cast<std::uint32_t>(number()); }
  void skip_line(unsigned line) {
    while (lexer_.peek().line == line && lexer_.peek().kind != Kind::end) lexer_.take();
  }

  void top_level() {
    const Token first = lexer_.take();
    if (first.kind != Kind::word) {
      if (first.is(";")) return;
      fail(first, "a directive");
    }
    if (first.is(".version") || first.is(".target") || first.is(".address_size") || first.is(".pragma")) {
      skip_line(first.line);
    } else if (first.is(".file")) {
      file();
    } else if (first.is(".loc")) {
      loc();
    } else if (first.is(".section")) {
      while (!accept("{")) {
        if (lexer_.take().kind == Kind::end) return;
      }
      lexer_.skip_braces();
    } else if (first.is(".visible") || first.is(".weak") || first.is(".common")) {
      return;
    } else if (first.is(".extern")) {
      external_ = true;
      return;
    } else if (first.is(".func") || first.is(".entry")) {
      function(first.is(".entry"));
    } else if (first.is(".alias")) {
      while (!accept(";")) lexer_.take();
    } else if (const auto space = space_of(first.text)) {
      module_.variables.push_back(variable(*space));
      module_.variables.back().external = external_;
      expect(";");
    } else {
      fail(first, "a directive");
    }
    external_ = false;
  }

  void file() {
    const auto index = small_number();
    if (lexer_.peek().kind != Kind::string) fail(lexer_.peek(), "a file name");
    places_.file(index, lexer_.take().text);
    while (accept(",")) number();
  }

  void loc() {
    std::array<std::uint32_t, 6> n{};
    for (int i = 0; i < 3; ++i) n[i] = small_number();
    while (accept(",")) {
      if (accept("function_name")) {
        word();
        if (accept("+")) number();
      } else if (accept("inlined_at")) {
        for (int i = 3; i < 6; ++i) n[i] = small_number();
      } else {
        fail(lexer_.peek(), "function_name or inlined_at");
      }
    }
    places_.loc(n[0], n[1], n[2], n[3], n[4], n[5]);
  }

  // After the state space: [.align N] [.v2|.v4] .type name [dims] [= values]
  Variable variable(Space space) {
    Variable result;
    result.space = space;
    std::size_t vector = 1;
    unsigned element = 0;
    bool typed = false;
    while (lexer_.peek().text.starts_with('.')) {
      const Token token = lexer_.take();
      if (token.is(".align")) {
        result.alignment = number();
        if (result.alignment == 0 || result.alignment > 4096) fail(token, "an alignment from 1 to 4096");
      } else if (token.is(".v2")) {
        vector = 2;
      } else if (token.is(".v4")) {
        vector = 4;
      } else if (token.is(".ptr")) {
        while (lexer_.peek().is(".global") || lexer_.peek().is(".shared") || lexer_.peek().is(".const") || lexer_.peek().is(".local")) lexer_.take();
        if (accept(".align")) number();
      } else if (const auto bytes = bytes_of(token.text)) {
        element = *bytes;
        typed = true;
      } else if (!token.is(".attribute") && !token.is(".managed")) {
        fail(token, "a type");
      } else if (accept("(")) {
        while (!accept(")")) lexer_.take();
      }
    }
    if (!typed || element == 0) fail(lexer_.peek(), "a type that has a size");
    result.alignment = std::max<std::size_t>(result.alignment, element * vector);
    result.name = word();
    std::size_t count = 1;
    bool open = false;
    while (accept("[")) {
      if (accept("]")) {
        open = true;
        continue;
      }
      const auto n = number();
      if (n > (std::size_t{1} << 40) || count * n > (std::size_t{1} << 40)) fail(lexer_.peek(), "an array that fits the memory");
      count *= n;
      expect("]");
    }
    const std::size_t width = element * vector;
    result.size = open ? 0 : count * width;
    if (accept("=")) {
      std::size_t offset = 0;
      values(result, element, offset);
      if (open) result.size = offset;
      if (offset > result.size) fail(lexer_.peek(), "no more values than the variable holds");
    }
    return result;
  }

  void values(Variable& into, unsigned element, std::size_t& offset) {
    if (accept("{")) {
      while (!accept("}")) {
        values(into, element, offset);
        if (!accept(",") && !lexer_.peek().is("}")) fail(lexer_.peek(), "',' or '}'");
      }
      return;
    }
    Initialiser value;
    value.offset = offset;
    value.width = element;
    const bool negative = accept("-");
    if (lexer_.peek().kind == Kind::number) {
      const Token token = lexer_.take();
      value.bits = token.bits;
      if (accept("(")) {  // 0xFF00(symbol): a byte of an address
        fail(token, "a plain value");
      }
    } else {
      value.symbol = word();
      if (value.symbol == "generic") {
        expect("(");
        value.symbol = word();
        expect(")");
      }
      if (accept("+")) value.bits = number();
    }
    if (negative) value.bits = 0 - value.bits;
    offset += element;
    into.values.push_back(value);
  }

  std::vector<Variable> parameter_list() {
    std::vector<Variable> result;
    if (!accept("(")) return result;
    while (!accept(")")) {
      const Token token = lexer_.take();
      if (!token.is(".param") && !token.is(".reg")) fail(token, ".param");
      result.push_back(variable(Space::parameter));
      if (!accept(",") && !lexer_.peek().is(")")) fail(lexer_.peek(), "',' or ')'");
    }
    return result;
  }

  void function(bool entry) {
    Function f;
    f.entry = entry;
    places_.enter_function();
    if (!entry) f.results = parameter_list();
    while (lexer_.peek().is(".noreturn")) lexer_.take();
    f.name = word();
    f.parameters = parameter_list();
    while (lexer_.peek().text.starts_with('.')) tuning(f);
    if (accept("{")) {
      f.defined = true;
      function_ = &f;
      scopes_.clear();
      open_scope();
      body();
      for (auto& s : f.statements) {
        if (s.place) continue;
        s.place = places_.current();
      }
    } else {
      accept(";");
    }
    const auto [at, fresh] = module_.by_name.try_emplace(f.name, static_cast<std::uint32_t>(module_.functions.size()));
    if (fresh) {
      module_.functions.push_back(std::move(f));
    } else if (f.defined) {
      module_.functions[at->second] = std::move(f);
    }
  }

  void tuning(Function& f) {
    const Token token = lexer_.take();
    if (token.is(".maxntid") || token.is(".reqntid")) {
      f.max_threads = small_number();
      while (accept(",")) f.max_threads *= small_number();
    } else if (token.is(".minnctapersm") || token.is(".maxnreg") || token.is(".maxnctapersm") || token.is(".maxclusterrank")) {
      number();
    } else if (token.is(".pragma")) {
      lexer_.take();
      expect(";");
    } else if (!token.is(".noreturn")) {
      fail(token, "a performance directive or '{'");
    }
  }

  void open_scope() {
    auto& parents = function_->scope_parents;
    const auto id = static_cast<std::uint32_t>(parents.size());
    parents.push_back(scopes_.empty() ? id : scopes_.back().id);
    scopes_.push_back({.id = id, .names = {}, .ranges = {}});
  }

  void body() {
    while (true) {
      const Token token = lexer_.peek();
      if (token.kind == Kind::end) fail(token, "'}'");
      if (accept("}")) {
        scopes_.pop_back();
        if (scopes_.empty()) return;
      } else if (accept("{")) {
        if (scopes_.size() > 200) fail(token, "fewer nested braces");
        open_scope();
      } else if (accept(";")) {
        continue;
      } else if (token.kind == Kind::word && token.text.starts_with('.')) {
        directive();
      } else if (token.is("@") || token.kind == Kind::word) {
        statement();
      } else {
        fail(token, "an instruction");
      }
    }
  }

  void directive() {
    const Token token = lexer_.take();
    if (token.is(".loc")) {
      loc();
    } else if (token.is(".reg")) {
      registers();
    } else if (token.is(".pragma")) {
      while (!accept(";")) {
        if (lexer_.take().kind == Kind::end) fail(token, "';'");
      }
    } else if (const auto space = space_of(token.text)) {
      do {
        function_->variables.push_back(variable(*space));
        function_->variables.back().scope = scopes_.back().id;
      } while (accept(","));
      accept(";");
    } else {
      skip_statement(token);
    }
  }

  // Notes what is not understood and goes on behind its semicolon.
  void skip_statement(const Token& first) {
    while (!lexer_.peek().is(";") && !lexer_.peek().is("}")) {
      if (lexer_.take().kind == Kind::end) fail(first, "';'");
    }
    if (function_->unknown.empty()) function_->unknown = std::string(lexer_.since(first).substr(0, 200));
  }

  void registers() {
    unsigned bytes = 4;
    bool vector = false;
    const Token first = lexer_.peek();
    while (lexer_.peek().text.starts_with('.')) {
      const Token token = lexer_.take();
      const auto found = bytes_of(token.text);
      if (found) {
        bytes = *found == 1 ? 2 : *found;
      } else {
        vector = true;
      }
    }
    if (vector || bytes > 8) {
      skip_statement(first);
      return;
    }
    do {
      const auto name = word();
      auto& all = function_->registers;
      const auto index = static_cast<std::int32_t>(all.size());
      std::uint64_t count = 1;
      if (accept("<")) {
        count = number();
        if (count > 1'000'000) fail(first, "fewer registers");
        expect(">");
        scopes_.back().ranges[name] = {index, count};
      } else {
        scopes_.back().names[name] = index;
      }
      all.insert(all.end(), count, Register{static_cast<std::uint8_t>(bytes)});
    } while (accept(","));
    expect(";");
  }

  std::int32_t find_register(std::string_view name) const {
    auto digits = name.size();
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
    std::uint64_t index = 0;
    for (const char c : name.substr(digits).substr(0, 9)) index = index * 10 + static_cast<std::uint64_t>(c - '0');
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->names.find(name); found != scope->names.end()) return found->second;
      if (digits == name.size()) continue;
      const auto range = scope->ranges.find(name.substr(0, digits));
      if (range != scope->ranges.end() && index < range->second.count) return range->second.first + static_cast<std::int32_t>(index);
    }
    return -1;
  }

  void statement() {
    const Token first = lexer_.peek();
    Statement s;
    s.place = places_.current();
    if (accept("@")) {
      s.guard_negated = accept("!");
      s.guard = find_register(word());
      if (s.guard < 0) fail(first, "a predicate register");
    }
    s.opcode = word();
    if (s.guard < 0 && accept(":")) {
      label(s.opcode);
      return;
    }
    while (!lexer_.peek().is(";")) {
      s.operands.push_back(operand());
      while (accept("|")) s.operands.back().second = predicate();
      if (!accept(",") && !lexer_.peek().is(";") && !lexer_.peek().is("(")) {
        skip_statement(first);
        break;
      }
    }
    s.text = lexer_.since(first);
    accept(";");
    function_->statements.push_back(std::move(s));
  }

  std::int32_t predicate() {
    const auto name = word();
    return name == "_" ? -2 : find_register(name);
  }

  void label(std::string_view name) {
    if (lexer_.peek().is(".callprototype")) {
      while (!accept(";")) {
        if (lexer_.take().kind == Kind::end) fail(lexer_.peek(), "';'");
      }
    } else if (accept(".branchtargets")) {
      auto& targets = function_->branch_targets[name];
      do {
        targets.push_back(operand());
      } while (accept(","));
      expect(";");
    } else {
      function_->labels[{scopes_.back().id, name}] = static_cast<std::uint32_t>(function_->statements.size());
    }
  }

  Operand operand() {
    Operand result;
    result.scope = scopes_.back().id;
    const Token token = lexer_.peek();
    if (depth_ > 8) fail(token, "a simpler operand");
    if (accept("[")) {
      result.kind = Operand::Kind::address;
      address(result);
    } else if (accept("{") || accept("(")) {
      const std::string_view close = token.is("{") ? "}" : ")";
      result.kind = Operand::Kind::vector;
      ++depth_;
      while (!accept(close)) {
        result.parts.push_back(operand());
        if (!accept(",") && !lexer_.peek().is(close)) fail(lexer_.peek(), "',' or the end of the list");
      }
      --depth_;
    } else if (accept("!")) {
      result = operand();
      result.negated = true;
    } else if (token.kind == Kind::number || token.is("-")) {
      result.kind = Operand::Kind::immediate;
      const bool negative = accept("-");
      const Token value = lexer_.take();
      if (value.kind != Kind::number) fail(value, "a number");
      result.float_width = value.float_width;
      result.bits = value.bits;
      if (negative) result.bits = value.float_width ? value.bits ^ (1ull << (value.float_width - 1)) : 0 - value.bits;
    } else {
      name(result);
    }
    return result;
  }

  void name(Operand& result) {
    result.name = word();
    if (result.name == "_") {
      result.kind = Operand::Kind::sink;
      return;
    }
    result.reg = find_register(result.name);
    result.kind = result.reg >= 0 ? Operand::Kind::reg : Operand::Kind::symbol;
    if (result.kind == Operand::Kind::symbol && lexer_.peek().is("+")) {
      lexer_.take();
      result.bits = number();
    }
  }

  void address(Operand& result) {
    if (lexer_.peek().kind == Kind::word) {
      const auto base = word();
      result.reg = find_register(base);
      if (result.reg < 0) result.name = base;
    } else {
      result.bits = number();
    }
    while (!accept("]")) {
      if (accept("+")) {
        result.bits += number();
      } else if (lexer_.peek().is("-")) {
        result.bits += number();
      } else {
        fail(lexer_.peek(), "']'");
      }
    }
  }

  Module& module_;
  Lexer lexer_;
  Places places_;
  Function* function_ = nullptr;
  std::vector<Scope> scopes_;
  int depth_ = 0;
  bool external_ = false;
};

}  // namespace

void parse(Module& module, std::string_view text) {
  module.text = text;
  Parser(module).run();
}

}  // namespace sim::ptx
