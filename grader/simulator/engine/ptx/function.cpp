// Functions: scopes, registers, statements and their operands.
#include "engine/ptx/parser.h"

namespace sim::ptx {

void Parser::function(bool entry) {
  Function f;
  f.entry = entry;
  f.local = !seen_outside_;
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

void Parser::tuning(Function& f) {
  const Token token = lexer_.take();
  if (token.is(".maxntid") || token.is(".reqntid")) {
    f.max_threads = small_number();
    while (accept(",")) f.max_threads *= small_number();
  } else if (token.is(".minnctapersm") || token.is(".maxnreg") || token.is(".maxnctapersm") ||
             token.is(".maxclusterrank")) {
    number();
  } else if (token.is(".pragma")) {
    lexer_.take();
    expect(";");
  } else if (token.is(".explicitcluster") || token.is(".reqnctapercluster") || token.is(".blocksareclusters")) {
    // Nothing of the kernel can run.
    while (!lexer_.peek().text.starts_with('.') && !lexer_.peek().is("{") && lexer_.peek().kind != Kind::end)
      lexer_.take();
    Statement s;
    s.opcode = token.text;
    s.text = lexer_.since(token);
    s.unknown = true;
    f.statements.push_back(std::move(s));
  } else if (!token.is(".noreturn")) {
    fail(token, "a performance directive or '{'");
  }
}

void Parser::open_scope() {
  auto& parents = function_->scope_parents;
  const auto id = static_cast<std::uint32_t>(parents.size());
  parents.push_back(scopes_.empty() ? id : scopes_.back().id);
  scopes_.push_back({.id = id, .names = {}, .ranges = {}});
}

void Parser::body() {
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

void Parser::directive() {
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
    Statement s;
    s.opcode = token.text;
    s.text = lexer_.since(token);
    s.place = places_.current();
    s.unknown = true;
    function_->statements.push_back(std::move(s));
  }
}

void Parser::skip_statement(const Token& first) {
  while (!lexer_.peek().is(";") && !lexer_.peek().is("}")) {
    if (lexer_.take().kind == Kind::end) fail(first, "';'");
  }
}

void Parser::registers() {
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

std::int32_t Parser::find_register(std::string_view name) const {
  auto digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  std::uint64_t index = 0;
  for (const char c : name.substr(digits).substr(0, 9)) index = index * 10 + static_cast<std::uint64_t>(c - '0');
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->names.find(name); found != scope->names.end()) return found->second;
    if (digits == name.size()) continue;
    const auto range = scope->ranges.find(name.substr(0, digits));
    if (range != scope->ranges.end() && index < range->second.count)
      return range->second.first + static_cast<std::int32_t>(index);
  }
  return -1;
}

void Parser::statement() {
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
      s.unknown = true;
      break;
    }
  }
  s.text = lexer_.since(first);
  accept(";");
  function_->statements.push_back(std::move(s));
}

std::int32_t Parser::predicate() {
  const auto name = word();
  return name == "_" ? -2 : find_register(name);
}

void Parser::label(std::string_view name) {
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

Operand Parser::operand() {
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

void Parser::name(Operand& result) {
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

void Parser::address(Operand& result) {
  if (lexer_.peek().kind == Kind::word) {
    const auto base = word();
    result.reg = find_register(base);
    if (result.reg < 0) result.name = base;
  } else {
    result.bits = number();
  }
  while (!accept("]")) {
    if (accept("+") || lexer_.peek().is("-")) {
      result.bits += number();
    } else if (lexer_.peek().is(",")) {  // [texture, {coordinates}]
      result.kind = Operand::Kind::none;
      while (!lexer_.peek().is("]") && !lexer_.peek().is(";") && lexer_.peek().kind != Kind::end) lexer_.take();
    } else {
      fail(lexer_.peek(), "']'");
    }
  }
}

}  // namespace sim::ptx
