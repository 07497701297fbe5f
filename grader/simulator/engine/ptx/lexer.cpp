#include "engine/ptx/lexer.h"

#include <cctype>
#include <charconv>
#include <cstring>
#include <string>

#include "device.h"

namespace sim::ptx {
namespace {

bool starts_word(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}
bool continues_word(char c) { return starts_word(c) || std::isdigit(static_cast<unsigned char>(c)); }

}  // namespace

Token Lexer::take() {
  Token token = next_;
  last_end_ = at_;
  advance();
  return token;
}

std::string_view Lexer::since(const Token& first) const {
  const auto begin = static_cast<std::size_t>(first.text.data() - text_.data());
  return text_.substr(begin, last_end_ - begin);
}

void Lexer::skip_braces() {
  for (int depth = 1; depth > 0;) {
    const Token token = take();
    if (token.kind == Kind::end) return;
    if (token.is("{")) ++depth;
    if (token.is("}")) --depth;
  }
}

void Lexer::skip_space() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') {
      ++line_;
      ++at_;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (text_.substr(at_, 2) == "/*") {
      const auto end = text_.find("*/", at_ + 2);
      for (auto i = at_; i < std::min(end, text_.size()); ++i) line_ += text_[i] == '\n';
      at_ = end == text_.npos ? text_.size() : end + 2;
    } else {
      return;
    }
  }
}

void Lexer::advance() {
  skip_space();
  next_ = Token{};
  next_.line = line_;
  const auto begin = at_;
  if (at_ >= text_.size()) {
    next_.text = text_.substr(text_.size());
    return;
  }
  const char c = text_[at_];
  if (c == '"') {
    const auto end = text_.find('"', at_ + 1);
    at_ = end == text_.npos ? text_.size() : end + 1;
    next_.kind = Kind::string;
    next_.text = text_.substr(begin + 1, at_ - begin - 2 + (end == text_.npos));
    return;
  }
  if (std::isdigit(static_cast<unsigned char>(c))) {
    lex_number();
    next_.kind = Kind::number;
  } else if (starts_word(c)) {
    // A directive ends at the next dot (.reg.b32), an instruction does not (add.s32).
    const auto goes_on = [&] {
      if (c == '.' && at_ > begin && text_[at_] == '.') return false;
      return continues_word(text_[at_]) || text_.substr(at_, 2) == "::";
    };
    while (at_ < text_.size() && goes_on()) at_ += text_[at_] == ':' ? 2 : 1;
    next_.kind = Kind::word;
  } else {
    ++at_;
    next_.kind = Kind::punctuation;
  }
  next_.text = text_.substr(begin, at_ - begin);
}

void Lexer::lex_number() {
  const auto begin = at_;
  const auto hex_from = [&](std::size_t from) {
    const char* first = text_.data() + from;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), next_.bits, 16);
    at_ = from + static_cast<std::size_t>(end - first);
  };
  const char kind = text_[at_] == '0' && at_ + 1 < text_.size() ? text_[at_ + 1] : ' ';
  switch (kind) {
    case 'f':
    case 'F': next_.float_width = 32; return hex_from(begin + 2);
    case 'd':
    case 'D': next_.float_width = 64; return hex_from(begin + 2);
    case 'x':
    case 'X': hex_from(begin + 2); break;
    default: {
      while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) ++at_;
      const bool fraction =
          at_ + 1 < text_.size() && text_[at_] == '.' && std::isdigit(static_cast<unsigned char>(text_[at_ + 1]));
      if (fraction) {
        while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.')) ++at_;
        double value = 0;
        std::from_chars(text_.data() + begin, text_.data() + at_, value);
        std::memcpy(&next_.bits, &value, sizeof value);
        next_.float_width = 64;
        return;
      }
      const int base = kind == 'b' || kind == 'B' ? 2 : text_[begin] == '0' && at_ - begin > 1 ? 8 : 10;
      const auto from = base == 2 ? begin + 2 : begin;
      const auto [end, error] = std::from_chars(text_.data() + from, text_.data() + text_.size(), next_.bits, base);
      at_ = static_cast<std::size_t>(end - text_.data());
    }
  }
  if (at_ < text_.size() && (text_[at_] == 'U' || text_[at_] == 'u')) ++at_;
}

}  // namespace sim::ptx
