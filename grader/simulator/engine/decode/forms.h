// Tables: types and the operand patterns of the plain instructions.
#pragma once

#include <string_view>
#include <unordered_map>

namespace sim {

struct Type {
  std::string_view name;
  unsigned bytes = 0;  // 0: predicate
  bool is_signed = false, real = false;
};

// nullptr if it is not a type.
inline const Type* find_type(std::string_view name) {
  static const std::unordered_map<std::string_view, Type> table{
      {"pred", {"pred", 0, false, false}},   {"b8", {"b8", 1, false, false}},
      {"u8", {"u8", 1, false, false}},       {"s8", {"s8", 1, true, false}},
      {"b16", {"b16", 2, false, false}},     {"u16", {"u16", 2, false, false}},
      {"s16", {"s16", 2, true, false}},      {"f16", {"f16", 2, false, false}},
      {"bf16", {"bf16", 2, false, false}},   {"b32", {"b32", 4, false, false}},
      {"u32", {"u32", 4, false, false}},     {"s32", {"s32", 4, true, false}},
      {"f32", {"f32", 4, false, true}},      {"tf32", {"tf32", 4, false, false}},
      {"f16x2", {"f16x2", 4, false, false}}, {"bf16x2", {"bf16x2", 4, false, false}},
      {"u16x2", {"u16x2", 4, false, false}}, {"s16x2", {"s16x2", 4, false, false}},
      {"b64", {"b64", 8, false, false}},     {"u64", {"u64", 8, false, false}},
      {"s64", {"s64", 8, true, false}},      {"f64", {"f64", 8, false, true}}};
  const auto found = table.find(name);
  return found == table.end() ? nullptr : &found->second;
}

// d, s: result and source of the instruction's type; W, w: of twice its width; U, u: of 32 bits; p: predicate source,
// P: predicate result; i: an immediate.
inline std::string_view form_of(std::string_view opcode) {
  static const std::unordered_map<std::string_view, std::string_view> table{
      {"add", "dss"},  {"sub", "dss"},    {"mul", "dss"},      {"mad", "dsss"},       {"fma", "dsss"},
      {"div", "dss"},  {"rem", "dss"},    {"abs", "ds"},       {"neg", "ds"},         {"min", "dss"},
      {"max", "dss"},  {"sad", "dsss"},   {"mul24", "dss"},    {"mad24", "dsss"},     {"and", "dss"},
      {"or", "dss"},   {"xor", "dss"},    {"not", "ds"},       {"cnot", "ds"},        {"shl", "dsu"},
      {"shr", "dsu"},  {"popc", "Us"},    {"clz", "Us"},       {"bfind", "Us"},       {"brev", "ds"},
      {"bfe", "dsuu"}, {"bfi", "dssuu"},  {"bmsk", "duu"},     {"fns", "duuu"},       {"prmt", "dsss"},
      {"shf", "dssu"}, {"lop3", "dsssi"}, {"dp4a", "duuu"},    {"dp2a", "duuu"},      {"rcp", "ds"},
      {"sqrt", "ds"},  {"rsqrt", "ds"},   {"sin", "ds"},       {"cos", "ds"},         {"lg2", "ds"},
      {"ex2", "ds"},   {"tanh", "ds"},    {"copysign", "dss"}, {"testp", "Ps"},       {"selp", "dssp"},
      {"addc", "dss"}, {"subc", "dss"},   {"madc", "dsss"},    {"vabsdiff2", "duuu"}, {"vabsdiff4", "duuu"}};
  const auto found = table.find(opcode);
  return found == table.end() ? std::string_view{} : found->second;
}

}  // namespace sim
