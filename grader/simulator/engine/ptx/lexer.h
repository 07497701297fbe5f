// Splits PTX text into tokens.
#pragma once

#include <cstdint>
#include <string_view>

namespace sim::ptx {

enum class Kind : std::uint8_t { word, number, string, punctuation, end };

struct Token {
  Kind kind = Kind::end;
  std::string_view text;
  std::uint64_t bits = 0;  // of a number: its value, or the pattern of a float
  std::uint8_t float_width = 0;  // 32 for 0f…, 64 for 0d… and decimal fractions, 0 for integers
  unsigned line = 0;             // of the PTX text

  bool is(std::string_view s) const { return text == s && kind != Kind::string; }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { advance(); }
  const Token& peek() const { return next_; }
  Token take();
  // The text from a token up to the one that comes next.
  std::string_view since(const Token& first) const;
  // Jumps behind the brace that closes the one just taken.
  void skip_braces();

 private:
  void advance();
  void skip_space();
  void lex_number();

  std::string_view text_;
  std::size_t at_ = 0, last_end_ = 0;
  unsigned line_ = 1;
  Token next_;
};

}  // namespace sim::ptx
