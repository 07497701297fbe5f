// What stands outside of functions: directives, variables and their values.
#include "engine/ptx/parser.h"

#include <array>

namespace sim::ptx {

std::optional<unsigned> bytes_of(std::string_view type) {
  static const std::unordered_map<std::string_view, unsigned> table{
      {".pred", 0},   {".b8", 1},   {".u8", 1},  {".s8", 1},  {".b16", 2}, {".u16", 2},  {".s16", 2},
      {".f16", 2},    {".bf16", 2}, {".b32", 4}, {".u32", 4}, {".s32", 4}, {".f32", 4},  {".f16x2", 4},
      {".bf16x2", 4}, {".b64", 8},  {".u64", 8}, {".s64", 8}, {".f64", 8}, {".b128", 16}};
  const auto found = table.find(type);
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Space> space_of(std::string_view word) {
  static const std::unordered_map<std::string_view, Space> table{{".global", Space::global},
                                                                 {".const", Space::constant},
                                                                 {".shared", Space::shared},
                                                                 {".local", Space::local},
                                                                 {".param", Space::parameter}};
  const auto found = table.find(word);
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

void Parser::run() {
  while (lexer_.peek().kind != Kind::end) top_level();
  module_.places = places_.resolve(module_.texts);
}

void Parser::fail(const Token& at, std::string_view expected) const {
  throw Refusal("PTX line " + std::to_string(at.line) + ": expected " + std::string(expected) + ", found '" +
                std::string(at.text.substr(0, 80)) + "'");
}

bool Parser::accept(std::string_view text) {
  if (!lexer_.peek().is(text) || lexer_.peek().kind == Kind::end) return false;
  lexer_.take();
  return true;
}

void Parser::expect(std::string_view text) {
  if (!accept(text)) fail(lexer_.peek(), "'" + std::string(text) + "'");
}

std::string_view Parser::word() {
  if (lexer_.peek().kind != Kind::word) fail(lexer_.peek(), "a name");
  return lexer_.take().text;
}

std::uint64_t Parser::number() {
  const bool negative = accept("-");
  if (lexer_.peek().kind != Kind::number) fail(lexer_.peek(), "a number");
  const auto bits = lexer_.take().bits;
  return negative ? 0 - bits : bits;
}

void Parser::skip_line(unsigned line) {
  while (lexer_.peek().line == line && lexer_.peek().kind != Kind::end) lexer_.take();
}

void Parser::top_level() {
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
    section();
  } else if (first.is(".visible") || first.is(".weak") || first.is(".common") || first.is(".extern")) {
    external_ |= first.is(".extern");
    seen_outside_ = true;
    return;
  } else if (first.is(".func") || first.is(".entry")) {
    function(first.is(".entry"));
  } else if (first.is(".alias")) {
    while (!accept(";")) lexer_.take();
  } else if (const auto space = space_of(first.text)) {
    module_.variables.push_back(variable(*space));
    module_.variables.back().external = external_;
    module_.variables.back().local = !seen_outside_;
    expect(";");
  } else {
    fail(first, "a directive");
  }
  external_ = seen_outside_ = false;
}

void Parser::file() {
  const auto index = small_number();
  if (lexer_.peek().kind != Kind::string) fail(lexer_.peek(), "a file name");
  places_.file(index, lexer_.take().text);
  while (accept(",")) number();
}

void Parser::loc() {
  std::array<std::uint32_t, 6> n{};
  std::string_view name;
  for (int i = 0; i < 3; ++i) n[i] = small_number();
  while (accept(",")) {
    if (accept("function_name")) {
      name = word();
      if (accept("+")) number();
    } else if (accept("inlined_at")) {
      for (int i = 3; i < 6; ++i) n[i] = small_number();
    } else {
      fail(lexer_.peek(), "function_name or inlined_at");
    }
  }
  places_.loc(n[0], n[1], n[2], n[3], n[4], n[5], name);
}

// Debugging information, of which the names of inlined functions count: labels, each with the bytes of a text.
void Parser::section() {
  const bool texts = accept(".debug_str");
  while (!accept("{")) {
    if (lexer_.take().kind == Kind::end) return;
  }
  if (!texts) return lexer_.skip_braces();
  std::string* text = nullptr;
  while (lexer_.peek().kind != Kind::end && !accept("}")) {
    const Token token = lexer_.take();
    if (token.kind == Kind::word && lexer_.peek().is(":")) {
      text = &module_.texts[token.text];
    } else if (token.kind == Kind::number && token.bits && text) {
      *text += static_cast<char>(token.bits);
    }
  }
}

Variable Parser::variable(Space space) {
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
      while (lexer_.peek().is(".global") || lexer_.peek().is(".shared") || lexer_.peek().is(".const") ||
             lexer_.peek().is(".local"))
        lexer_.take();
      if (accept(".align")) number();
    } else if (const auto bytes = bytes_of(token.text)) {
      element = *bytes;
      typed = true;
    } else if (token.is(".attribute")) {
      expect("(");
      while (!accept(")")) {
        if (lexer_.peek().kind == Kind::end) fail(lexer_.peek(), "')'");
        result.managed |= lexer_.take().is(".managed");
      }
    } else {
      fail(token, "a type");
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
    if (n > (std::size_t{1} << 40) || count * n > (std::size_t{1} << 40))
      fail(lexer_.peek(), "an array that fits the memory");
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

void Parser::values(Variable& into, unsigned element, std::size_t& offset) {
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

std::vector<Variable> Parser::parameter_list() {
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

void parse(Module& module, std::string_view text) {
  module.text = text;
  Parser(module).run();
}

}  // namespace sim::ptx
